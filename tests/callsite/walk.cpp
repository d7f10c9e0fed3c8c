// Stacks for profiles, and the names of their frames.

#include "catch.h"

#include <cerrno>
#include <cstring>
#include <gnu/libc-version.h>
#include <string>
#include <sys/mman.h>
#include <vector>

extern "C" {
#include "names.h"
#include "readable.h"
#include "walk.h"
}

#ifdef HKC_CFI_WALK

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa)) /* nor a copy with another name */
#endif

static hkc_walk walk;

extern "C" OWN size_t walk_inner(uintptr_t *frames, size_t room)
{
    hkc_cfi_registers here;
    hkc_cfi_here(&here);
    const size_t n = hkc_walk_stack(&walk, &here, 0, 0, frames, room);
    __asm__ volatile("" ::: "memory");
    return n;
}

extern "C" OWN size_t walk_outer(uintptr_t *frames, size_t room)
{
    const size_t n = walk_inner(frames, room);
    __asm__ volatile("" ::: "memory");
    return n;
}

static std::vector<std::string> names_of(const uintptr_t *frames, size_t n)
{
    hkc_names names = {};
    std::vector<std::string> texts;
    for (size_t i = 0; i < n; i++)
        REQUIRE(hkc_names_add(&names, frames[i]));
    hkc_names_resolve(&names);
    for (size_t i = 0; i < n; i++) {
        const hkc_name *name = hkc_names_find(&names, frames[i]);
        REQUIRE(name != nullptr);
        texts.emplace_back(name->function ? name->function : "");
    }
    hkc_names_close(&names);
    return texts;
}

TEST_CASE("a stack has all frames up to the beginning of the program, by name")
{
    for (int again = 0; again < 3; again++) { // looked up, and known
        uintptr_t frames[64];
        const size_t n = walk_outer(frames, 64);
        REQUIRE(n > 4);
        REQUIRE(n < 64);
        const std::vector<std::string> names = names_of(frames, n);
        CHECK(names[0] == "walk_inner");
        CHECK(names[1] == "walk_outer");
        CHECK(names[names.size() - 1] == "_start");
        CHECK(walk_outer(frames, 3) == 3);
    }
}

TEST_CASE("frames of the caller's own code are left out")
{
    uintptr_t all[64], some[64];
    hkc_cfi_registers here;
    hkc_cfi_here(&here);
    const size_t n = hkc_walk_stack(&walk, &here, 0, 0, all, 64);
    REQUIRE(n > 2);
    const size_t left = hkc_walk_stack(&walk, &here, all[0] - 1, all[0] + 1, some, 64);
    REQUIRE(left == n - 1);
    CHECK(std::memcmp(all + 1, some, left * sizeof *some) == 0);
}

TEST_CASE("a walk from anywhere reads nothing that is not there")
{
    uintptr_t frames[64], pc = 0;
    REQUIRE(walk_outer(frames, 64) > 2);
    pc = frames[1];
    char *page = (char *)mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    REQUIRE(mprotect(page + 4096, 4096, PROT_NONE) == 0);
    for (uintptr_t sp :
         {(uintptr_t)0, (uintptr_t)8, (uintptr_t)page + 4096 - 8, (uintptr_t)page + 4095, ~(uintptr_t)7}) {
        hkc_cfi_registers at = {};
        at.pc = pc;
        at.sp = sp;
        at.saved[HKC_CFI_FP] = sp;
        CHECK(hkc_walk_stack(&walk, &at, 0, 0, frames, 64) <= 64);
    }
    CHECK(hkc_readable(page, 4096));
    CHECK(hkc_readable(page + 4095, 1));
    CHECK_FALSE(hkc_readable(page, 4097));
    CHECK_FALSE(hkc_readable(page + 4096, 1));
    CHECK_FALSE(hkc_readable(nullptr, 1));
    CHECK_FALSE(hkc_readable(page, SIZE_MAX));
    errno = 77;
    CHECK_FALSE(hkc_readable(nullptr, 1));
    CHECK(errno == 77);
    munmap(page, 8192);
}

#endif

extern "C" __attribute__((noinline)) void names_known()
{
    __asm__ volatile("");
}

TEST_CASE("what was added again and again, and put in order meanwhile, is not yet looked up")
{
    hkc_names names = {};
    const uintptr_t one = (uintptr_t)&names_known + 1, other = (uintptr_t)&walk_outer + 1;
    for (int i = 0; i < 2000; i++)
        REQUIRE(hkc_names_add(&names, i % 2 ? one : other));
    CHECK(names.count == names.sorted);
    CHECK(names.count != names.resolved);
    hkc_names_resolve(&names);
    CHECK(names.count == names.resolved);
    CHECK(std::string(hkc_names_find(&names, other)->function) == "walk_outer");
    CHECK(hkc_names_add(&names, one));
    CHECK(names.count == names.resolved);
    hkc_names_close(&names);
}

TEST_CASE("names stay when more are added, and what is no code has none")
{
    static int data;
    hkc_names names = {};
    const uintptr_t pc = (uintptr_t)&names_known + 1;
    REQUIRE(hkc_names_find(&names, pc) == nullptr);
    REQUIRE(hkc_names_add(&names, pc));
    hkc_names_resolve(&names);
    const char *function = hkc_names_find(&names, pc)->function;
    CHECK(std::string(function) == "names_known");
    CHECK(std::string(hkc_names_find(&names, pc)->module) == "test_callsite");
    for (uintptr_t i = 0; i < 5000; i++) {
        REQUIRE(hkc_names_add(&names, i * 7919 % 5000 + 1));
        REQUIRE(hkc_names_add(&names, pc));
    }
    REQUIRE(hkc_names_add(&names, (uintptr_t)&data));
    REQUIRE(hkc_names_add(&names, (uintptr_t)&gnu_get_libc_version + 1));
    hkc_names_resolve(&names);
    CHECK(hkc_names_find(&names, pc)->function == function);
    CHECK(names.count == 5003);
    for (uintptr_t i = 1; i <= 5000; i++)
        REQUIRE(hkc_names_find(&names, i)->function == nullptr);
    CHECK(std::string(hkc_names_find(&names, (uintptr_t)&data)->function).substr(0, 2) == "0x");
    CHECK(std::string(hkc_names_find(&names, (uintptr_t)&gnu_get_libc_version + 1)->module).substr(0, 4) ==
          "libc");
    hkc_names_close(&names);
}

TEST_CASE("names take room for each place once, however often it is added")
{
    hkc_names names = {};
    for (uintptr_t i = 0; i < 1000000; i++)
        REQUIRE(hkc_names_add(&names, i * 7919 % 3000 + 1));
    CHECK(names.room <= 8192);
    hkc_names_resolve(&names);
    CHECK(names.count == 3000);
    hkc_names_close(&names);
}
