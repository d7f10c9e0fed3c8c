// Requests for pages that are refused during the life of a host, from its first page to its last.
#pragma once

#include "nth.h"
#include "wasm_test.h"

#include <chrono>
#include <thread>

namespace test
{

// Of one life. A life may end it early, to see that everything works again.
class Refusal
{
  public:
    Refusal(uint64_t n, uint64_t each) : lasts(each == 1)
    {
        nth_fail(n, each);
    }
    Refusal(const Refusal &) = delete;
    Refusal &operator=(const Refusal &) = delete;
    ~Refusal()
    {
        end();
    }
    uint64_t end() // how many were refused
    {
        failed_ += nth_failed();
        nth_fail(0, 0);
        return failed_;
    }
    const bool lasts; // all are refused, to the end of the life

  private:
    uint64_t failed_ = 0;
};

// Requirements of a life that runs on any thread; Catch's are for one.
struct Course {
    bool whole = true; // nothing was missed
    std::string wrong; // what must not be, at first
    void need(bool had)
    {
        whole = whole && had;
    }
    void require(bool right, const char *what)
    {
        if (!right && wrong.empty()) wrong = what;
    }
    void add(const Course &other)
    {
        need(other.whole);
        require(other.wrong.empty(), other.wrong.c_str());
    }
};

// The n-th request alone, all from the n-th on, and one of three, until no request is left to refuse. Returns
// how many lives missed something.
template <typename Life>
int each_request(Life life)
{
    int missed = 0;
    for (uint64_t each : {0, 1, 3}) {
        for (uint64_t n = 1;; n++) {
            INFO("request " << n << ", each " << each << " of them");
            REQUIRE(n < 1000);
            const int64_t mapped = nth_mapped();
            Refusal refusal(n, each);
            const Course course = life(refusal);
            const uint64_t failed = refusal.end();
            REQUIRE(course.wrong == "");
            REQUIRE(nth_mapped() == mapped);
            if (failed == 0) {
                REQUIRE(course.whole);
                break;
            }
            missed += !course.whole;
        }
    }
    return missed;
}

// What a host has when no guest is left.
inline void require_empty(hak_wasm_host *host, Course *course)
{
    hak_wasm_host_info info = {};
    info.size = sizeof info;
    course->require(hak_wasm_host_stats(host, &info) == 0 && info.live == 0, "a memory is left");
    course->require(info.image_bytes == 0, "an image is left");
    course->require(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0,
                    "linear bytes of the host are left");
}

inline void require_empty(hak_wasm_tenant *tenant, Course *course)
{
    hak_wasm_tenant_info info = {};
    info.size = sizeof info;
    course->require(hak_wasm_tenant_stats(tenant, &info) == 0, "statistics");
    // Where the system does not let go of an image's mapping, the image is there and charged until a later
    // try. If another thread makes that try now, the two numbers are of two moments.
    for (int again = 0; again < 1000 && info.linear_bytes != info.image_bytes; again++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        course->require(hak_wasm_tenant_stats(tenant, &info) == 0, "statistics");
    }
    course->require(info.linear_bytes == info.image_bytes, "linear bytes are left");
    course->require(info.heap_live == 0, "blocks are left");
    course->require(info.instances == 0, "an instance is left");
}

} // namespace test
