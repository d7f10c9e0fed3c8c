// Fuzz target: the input's bytes are the decisions of the shadow model.
#include "input.h"
#include "shadow.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test::Input input(data, size);
    try {
        test::Shadow shadow([&] { return input.value(); });
        while (input.left())
            shadow.step();
        shadow.finish();
        test::operations.count += shadow.steps;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "fuzz_alloc: %s\n", e.what());
        std::abort();
    }
    return 0;
}
