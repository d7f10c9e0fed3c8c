// The reader of unwind tables against that of elfutils, over every function of the images in this process.
#include "catch.h"

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

// The caller's register: bytes below the CFA, 0 = unchanged, -1 = elsewhere, -2 = undefined.
long saved_below(Dwarf_Frame *frame, int reg)
{
    Dwarf_Op mem[3];
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_register(frame, reg, mem, &ops, &count) != 0) return -1;
    if (count == 0) return ops == nullptr ? 0 : -2;
    if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst) return -1;
    return -(long)ops[1].number;
}

constexpr int DWARF_NUMBERS[HKC_CFI_SAVED] = {3, 6, 12, 13, 14, 15};

// saves: of a frame that has a rule; false = some register is not to be had.
bool expected_rule(Dwarf_CFI *cfi, Dwarf_Addr address, hkc_cfi_rule *rule, hkc_cfi_saves *saves,
                   bool *all_saved)
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
        *saves = {rule->cfa_from_fp, (uint32_t)rule->cfa_offset, {}};
        *all_saved = ok;
        for (int r = 0; r < HKC_CFI_SAVED; r++) {
            long below = saved_below(frame, DWARF_NUMBERS[r]);
            if (below == -2 && r != HKC_CFI_FP) below = 0; // what elfutils begins with: nothing was said
            if (below < 0) *all_saved = false;
            else saves->below[r] = (uint32_t)below;
        }
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
                hkc_cfi_saves saves = {}, got_saves = {};
                bool all_saved = false;
                bool exists = expected_rule(cfi, pc - 1 - image.bias, &expected, &saves, &all_saved);
                const bool found_saves = hkc_cfi_saves_at(pc, &got_saves);
                if (found_saves != (exists && all_saved) ||
                    (found_saves && (got_saves.cfa_offset != saves.cfa_offset ||
                                     got_saves.cfa_from_fp != saves.cfa_from_fp ||
                                     !std::equal(saves.below, saves.below + HKC_CFI_SAVED, got_saves.below))))
                    FAIL("the registers at " << std::hex << pc - image.bias);
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
    return HKC_CFI_CALLER();
}

TEST_CASE("a step leads to the caller's return address")
{
    uintptr_t own_return = (uintptr_t)__builtin_return_address(0);
    hkc_cfi_frame frame = caller_seen();
    hkc_cfi_rule rule;
    REQUIRE(hkc_cfi_rule_at(frame.pc, &rule));
    CHECK(hkc_cfi_up(frame, &rule).pc == own_return);
}

namespace
{

// Uses up the registers, so that what the caller has in them is saved.
__attribute__((noinline)) uintptr_t climb_to(uintptr_t pc, hkc_cfi_registers *at)
{
    uintptr_t noise[HKC_CFI_SAVED];
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        noise[r] = pc * (uintptr_t)(r + 3);
    __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
    hkc_cfi_here(at);
    hkc_cfi_saves saves;
    for (int i = 0; i < 20 && at->pc != pc && hkc_cfi_saves_at(at->pc, &saves); i++)
        hkc_cfi_climb(at, &saves);
    return noise[0] ^ noise[HKC_CFI_SAVED - 1];
}

} // namespace

// Registers with known values, called, and what is found of them on the way up from the callee.
extern "C" uintptr_t test_cfi_callee(hkc_cfi_registers *at);
extern "C" void test_cfi_caller(const uintptr_t *values, hkc_cfi_registers *at);
extern "C" const char test_cfi_return[];
uintptr_t test_cfi_callee(hkc_cfi_registers *at)
{
    return climb_to((uintptr_t)test_cfi_return, at);
}
__asm__(".text\n.globl test_cfi_caller\n.type test_cfi_caller, @function\ntest_cfi_caller:\n.cfi_startproc\n"
        "pushq %rbx\n.cfi_adjust_cfa_offset 8\npushq %rbp\n.cfi_adjust_cfa_offset 8\n"
        "pushq %r12\n.cfi_adjust_cfa_offset 8\npushq %r13\n.cfi_adjust_cfa_offset 8\n"
        "pushq %r14\n.cfi_adjust_cfa_offset 8\npushq %r15\n.cfi_adjust_cfa_offset 8\n"
        "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "movq 0(%rdi), %rbx\nmovq 8(%rdi), %rbp\nmovq 16(%rdi), %r12\nmovq 24(%rdi), %r13\n"
        "movq 32(%rdi), %r14\nmovq 40(%rdi), %r15\nmovq %rsi, %rdi\n"
        "call test_cfi_callee\n.globl test_cfi_return\ntest_cfi_return:\n"
        "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\nret\n.cfi_endproc\n"
        ".size test_cfi_caller, .-test_cfi_caller\n");

TEST_CASE("registers are those that the caller had when it called")
{
    const uintptr_t values[HKC_CFI_SAVED] = {0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666};
    hkc_cfi_registers at = {};
    test_cfi_caller(values, &at);
    REQUIRE(at.pc == (uintptr_t)test_cfi_return);
    for (int r = 0; r < HKC_CFI_SAVED; r++)
        CHECK(at.saved[r] == values[r]);
}
