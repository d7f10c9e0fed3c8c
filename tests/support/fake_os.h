// A hak_os table for tests: real reservations without access rights, so that touching a page that was
// not committed crashes; counts every call and page, fails requests on demand, and has a clock that only
// the test moves.
#pragma once

#include <hakmem/hakmem.h>
#include <hakmem/tuning.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace test
{

constexpr size_t PAGE = 4096;
constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;
constexpr size_t GiB = 1024 * MiB;

struct OsCounts {
    uint64_t reserve = 0, commit = 0, decommit = 0, release = 0, remap = 0, huge = 0, populate = 0, clock = 0,
             protect = 0;
    uint64_t calls() const
    {
        return reserve + commit + decommit + release + remap + huge + populate + clock + protect;
    }
    uint64_t requests() const
    {
        return reserve + commit + remap + protect;
    }
};

class FakeOs
{
  public:
    FakeOs() = default;
    // keep: its pages are those of the arena (arena.h), if there can be one.
    explicit FakeOs(bool keep);
    FakeOs(const FakeOs &) = delete;
    FakeOs &operator=(const FakeOs &) = delete;
    // Aborts with the report when a leak or a broken rule was not fetched by close().
    ~FakeOs();

    // The table; valid as long as this object.
    const hak_os *table();

    // The n-th request from now fails (1 = the next), and only that one. 0 = none.
    void fail_nth(uint64_t n)
    {
        fail_at_ = n ? counts.requests() + n : 0;
    }
    // Of n requests one fails, from now on. 0 = none.
    void fail_each(uint64_t n)
    {
        fail_each_ = n;
    }
    // All requests fail.
    void refuse_all(bool on)
    {
        refuse_all_ = on;
    }
    // Reservations of more than n bytes fail. 0 = no such bound.
    void refuse_reserve_above(size_t n)
    {
        reserve_bound_ = n;
    }

    // Bytes now reserved, and committed pages among them.
    size_t reserved() const
    {
        return reserved_;
    }
    size_t committed() const
    {
        return committed_;
    }
    // Bytes of committed pages that were touched.
    size_t resident() const;
    // Whether every byte of the range may be touched.
    bool usable(const void *p, size_t n) const;

    // Broken rules so far, and leaks: call it when every space is deleted. "" = none.
    std::string close();

    OsCounts counts;
    uint64_t failed = 0;          // requests refused by order of the test
    std::atomic<uint64_t> now{1}; // the clock, in nanoseconds
    uint64_t goes_on = 0;         // by so much each time that somebody reads it
    size_t largest_reserve = 0;

  private:
    struct Range {
        size_t size;
        std::vector<unsigned char> pages; // 1 = committed
    };
    using Ranges = std::map<uintptr_t, Range>;

    void *reserve(size_t n, size_t align, uintptr_t below);
    int commit(void *p, size_t n);
    int protect(void *p, size_t n, bool on);
    void decommit(void *p, size_t n);
    void release(void *p, size_t n);
    void *remap(void *p, size_t old_n, size_t n, uintptr_t below);
    bool refused();
    void *map(size_t n, size_t align, uintptr_t below);
    Range *add(void *p, size_t n);
    void drop(Ranges::iterator it);
    bool open_pages(Range *range, uintptr_t base, uintptr_t p, size_t n);
    bool close_pages(void *p, size_t n);
    Range *find(uintptr_t p, size_t n, const char *what, uintptr_t *base);
    size_t set_pages(Range *range, uintptr_t base, uintptr_t p, size_t n, bool on);
    void broken(const char *what, const void *p, size_t n);

    hak_os table_{};
    Ranges ranges_;
    std::string broken_;
    uint64_t fail_at_ = 0, fail_each_ = 0;
    size_t reserve_bound_ = 0;
    size_t reserved_ = 0, committed_ = 0;
    bool refuse_all_ = false, closed_ = false, keep_ = false;
};

} // namespace test
