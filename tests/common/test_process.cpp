// Time that a process lends its heap, by clocks as they are and as they should not be.
#include "catch.h"

#include <ctime>
#include <functional>
#include <vector>

extern "C" {
#include "common/process.h"
}

namespace
{

uint64_t now_ns;
std::vector<uint64_t> ticks;
std::function<void()> meanwhile; // runs in the middle of a look at the clock, as another thread may

constexpr uint64_t SECOND = 1000000000;

} // namespace

// In place of libc's and of the core's.
extern "C" int clock_gettime(clockid_t, struct timespec *t) noexcept
{
    const uint64_t at = now_ns;
    if (auto once = std::move(meanwhile)) {
        meanwhile = nullptr;
        once();
    }
    *t = {time_t(at / SECOND), long(at % SECOND)};
    return 0;
}
extern "C" void hak_ctx_tick(hak_ctx *, uint64_t now)
{
    ticks.push_back(now);
}
extern "C" void hak_ctx_thread_done(hak_ctx *)
{
}
extern "C" void hak_ctx_fork_prepare(hak_ctx *)
{
}
extern "C" void hak_ctx_fork_parent(hak_ctx *)
{
}
extern "C" void hak_ctx_fork_child(hak_ctx *)
{
}

TEST_CASE("a process ticks four times a second, whatever its clock does")
{
    now_ns = 1000 * SECOND;
    for (int i = 0; i < 1000; i++, now_ns += SECOND / 100)
        hkc_process_tick();
    CHECK(ticks.size() == 40);

    // It stands still.
    ticks.clear();
    for (int i = 0; i < 1000; i++)
        hkc_process_tick();
    CHECK(ticks.size() <= 1);

    // It goes back, and on from there.
    ticks.clear();
    now_ns = 5 * SECOND;
    for (int i = 0; i < 1000; i++, now_ns += SECOND / 100)
        hkc_process_tick();
    CHECK(ticks.size() == 40);

    // It jumps ahead, and is back at once.
    ticks.clear();
    now_ns += 1000000 * SECOND;
    hkc_process_tick();
    now_ns -= 1000000 * SECOND;
    for (int i = 0; i < 1000; i++, now_ns += SECOND / 100)
        hkc_process_tick();
    CHECK(ticks.size() == 41);
}

TEST_CASE("a thread that was held up with an old time does not turn the clock back")
{
    now_ns += 100 * SECOND;
    hkc_process_tick();
    now_ns += SECOND;
    ticks.clear();
    meanwhile = [] {
        now_ns += SECOND;
        hkc_process_tick();
    };
    hkc_process_tick();
    REQUIRE(ticks.size() == 1);
    CHECK(ticks[0] == now_ns);
}
