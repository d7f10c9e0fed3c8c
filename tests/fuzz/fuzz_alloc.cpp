// Fuzz target: the input's bytes are the decisions of the shadow model.
#include "input.h"
#include "shadow.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

extern "C" {
// One thread: a lock that is taken was not dropped. Linked in place of the core's hk_lock_wait.
void __wrap_hk_lock_wait(void *)
{
    std::fprintf(stderr, "fuzz_alloc: a lock was not dropped\n");
    test::tell_operations();
    std::abort();
}

// An invariant of the core does not hold. Linked in place of the core's hk_assert_failed.
void __wrap_hk_assert_failed(const char *what)
{
    std::fprintf(stderr, "fuzz_alloc: %s", what);
    test::tell_operations();
    std::abort();
}

void __asan_on_error()
{
    test::tell_operations();
}

void __ubsan_on_report()
{
    test::tell_operations();
}
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test::Input input(data, size);
    const uint64_t before = test::operations.count;
    try {
        test::Shadow shadow([&] { return input.value(); }, 16, true);
        while (input.left()) {
            shadow.step();
            test::operations.count = before + shadow.steps;
        }
        shadow.finish();
        test::operations.count = before + shadow.steps;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "fuzz_alloc: %s\n", e.what());
        test::tell_operations();
        std::abort();
    }
    return 0;
}
