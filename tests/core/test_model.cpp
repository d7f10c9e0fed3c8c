// Random operations on several contexts against a shadow (support/shadow.h). The seed is printed on a
// failure; HAK_TEST_SEED and HAK_TEST_OPS set seed and number of operations of one run.
#include "heap.h"
#include "shadow.h"

#include <cstdlib>
#include <exception>

using namespace test;

namespace
{

void run(uint64_t seed, uint64_t operations)
{
    INFO("HAK_TEST_SEED=" << seed << " HAK_TEST_OPS=" << operations);
    Random random(seed);
    std::string error;
    try {
        Shadow shadow([&] { return random.next(); });
        for (uint64_t i = 0; i < operations; i++) {
            shadow.step();
            if (i % 5003 == 0) shadow.verify();
        }
        shadow.finish();
        CHECK(shadow.most_blocks > (operations < 50000 ? 10 : 200));
    } catch (const std::exception &e) {
        error = e.what();
    }
    REQUIRE(error == "");
}

uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = std::getenv(name);
    return value ? std::strtoull(value, nullptr, 0) : otherwise;
}

} // namespace

TEST_CASE("many short lives")
{
    if (std::getenv("HAK_TEST_SEED")) return;
    for (uint64_t seed = 1; seed <= 12 * EFFORT; seed++)
        run(seed, 5000);
}

TEST_CASE("long random lives agree with the model")
{
    if (std::getenv("HAK_TEST_SEED")) {
        run(from_environment("HAK_TEST_SEED", 1), from_environment("HAK_TEST_OPS", 5000));
        return;
    }
    for (uint64_t seed = 1001; seed <= 1004; seed++)
        run(seed, from_environment("HAK_TEST_OPS", 75000 * EFFORT));
}
