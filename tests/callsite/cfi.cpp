// The reader of unwind tables against that of elfutils, over every function of the images in this process.
#include <catch2/catch.hpp>

extern "C" {
#include "cfi.h"
}

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace
{

struct Image {
    std::string path;
    uintptr_t bias;
    uintptr_t low = 0, high = 0; // code
};

std::vector<Image> images()
{
    std::vector<Image> found;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *user) {
            Image image{info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/self/exe", info->dlpi_addr};
            for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) &ph = info->dlpi_phdr[i];
                if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) != 0) {
                    image.low = info->dlpi_addr + ph.p_vaddr;
                    image.high = image.low + ph.p_memsz;
                }
            }
            if (access(image.path.c_str(), R_OK) == 0) // not the vdso
                static_cast<std::vector<Image> *>(user)->push_back(image);
            return 0;
        },
        &found);
    return found;
}

// The caller's register: bytes below the CFA, 0 = unchanged, -1 = elsewhere.
long saved_below(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3];
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_register(frame, reg, mem, &ops, &count) != 0) return -1;
    if (count == 0) return ops == nullptr ? 0 : -1;
    if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst) return -1;
    return -(long)ops[1].number;
}

bool expected_rule(Dwarf_CFI *cfi, Dwarf_Addr address, hkc_cfi_rule *rule)
{
    Dwarf_Frame *frame;
    if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) return false;
    Dwarf_Op *ops;
    size_t count;
    bool ok = dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1 && ops[0].atom == DW_OP_bregx &&
              (ops[0].number == 6 || ops[0].number == 7) && (long)ops[0].number2 > 0;
    if (ok) {
        long fp = saved_below(frame, 6);
        rule->cfa_from_fp = ops[0].number == 6;
        rule->cfa_offset = ops[0].number2;
        rule->fp_below = (size_t)fp;
        ok = fp >= 0 && saved_below(frame, 16) == 8;
    }
    std::free(frame);
    return ok;
}

} // namespace

TEST_CASE("rules are those that elfutils reads")
{
    REQUIRE(elf_version(EV_CURRENT) != EV_NONE);
    size_t compared = 0, rules = 0, functions = 0;
    for (const Image &image : images()) {
        INFO(image.path);
        int fd = open(image.path.c_str(), O_RDONLY);
        REQUIRE(fd >= 0);
        Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
        Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
        if (cfi != nullptr) {
            uintptr_t function = 0;
            std::vector<uintptr_t> starts(hkc_cfi_functions(image.low + 1, nullptr, 0));
            hkc_cfi_functions(image.low + 1, starts.data(), starts.size());
            // Return addresses; a prime step meets all kinds of places in reasonable time.
            for (uintptr_t pc = image.low + 1; pc < image.high; pc += 7) {
                hkc_cfi_rule expected = {}, got = {};
                bool exists = expected_rule(cfi, pc - 1 - image.bias, &expected);
                bool found = hkc_cfi_rule_at(pc, &got);
                compared++;
                rules += exists;
                if (exists != found || (exists && (expected.cfa_from_fp != got.cfa_from_fp ||
                                                   expected.cfa_offset != got.cfa_offset ||
                                                   expected.fp_below != got.fp_below))) {
                    INFO("address " << std::hex << pc - image.bias);
                    CHECK(exists == found);
                    CHECK(expected.cfa_from_fp == got.cfa_from_fp);
                    CHECK(expected.cfa_offset == got.cfa_offset);
                    CHECK(expected.fp_below == got.fp_below);
                }
                uintptr_t start = hkc_cfi_function(pc);
                if (exists && (start == 0 || start >= pc || start < function))
                    FAIL("the function of " << std::hex << pc - image.bias);
                auto behind = std::upper_bound(starts.begin(), starts.end(), pc - 1);
                if (start != 0 && (behind == starts.begin() || behind[-1] != start))
                    FAIL("the function in order of " << std::hex << pc - image.bias);
                functions += start != function;
                function = start;
            }
            dwarf_cfi_end(cfi);
        }
        elf_end(elf);
        close(fd);
    }
    CHECK(compared > 100000);
    CHECK(rules > compared / 2);
    CHECK(functions > 1000);
}

TEST_CASE("addresses outside of images have neither rule nor function")
{
    static char data[16];
    hkc_cfi_rule rule;
    for (uintptr_t pc : {(uintptr_t)1, (uintptr_t)data, ~(uintptr_t)0}) {
        CHECK_FALSE(hkc_cfi_in_image(pc));
        CHECK(hkc_cfi_function(pc) == 0);
        CHECK_FALSE(hkc_cfi_rule_at(pc, &rule));
    }
    CHECK(hkc_cfi_in_image((uintptr_t)&std::strlen + 1));
}

__attribute__((noinline)) static hkc_cfi_frame caller_seen()
{
    return hkc_cfi_caller(HKC_CFI_CALLER_SP());
}

TEST_CASE("a step leads to the caller's return address")
{
    uintptr_t own_return = (uintptr_t)__builtin_return_address(0);
    hkc_cfi_frame frame = caller_seen();
    hkc_cfi_rule rule;
    REQUIRE(hkc_cfi_rule_at(frame.pc, &rule));
    CHECK(hkc_cfi_up(frame, &rule).pc == own_return);
}
