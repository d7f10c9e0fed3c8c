#include "arena.h"

#include "fake_os.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef TEST_ASAN_RUNTIME
extern "C" void __asan_poison_memory_region(void const volatile *p, size_t n);
extern "C" void __asan_unpoison_memory_region(void const volatile *p, size_t n);
extern "C" void *__asan_region_is_poisoned(void *p, size_t n);
#else
// Never called.
static void __asan_poison_memory_region(void const volatile *, size_t)
{
}
static void __asan_unpoison_memory_region(void const volatile *, size_t)
{
}
static void *__asan_region_is_poisoned(void *, size_t)
{
    return nullptr;
}
#endif

namespace test
{

namespace
{

constexpr size_t BYTES = 16 * GiB;
constexpr size_t MUCH = MiB;

struct Arena {
    char *base;
    std::vector<unsigned char> dirty; // pages that may hold something
    std::map<char *, size_t> taken;
    char *high; // behind it nobody had anything yet, and nothing is poisoned

    Arena() : dirty(BYTES / PAGE)
    {
        void *p =
            mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            std::perror("arena");
            std::abort();
        }
        madvise(p, BYTES, MADV_NOHUGEPAGE);
        base = high = static_cast<char *>(p);
    }
    unsigned char *pages(const void *p)
    {
        return &dirty[(size_t)(static_cast<const char *>(p) - base) / PAGE];
    }
};

Arena &arena()
{
    static Arena it;
    return it;
}

char *up(char *p, size_t align)
{
    return reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(p) + align - 1) & ~(uintptr_t)(align - 1));
}

} // namespace

bool arena_possible()
{
#ifdef TEST_ASAN_RUNTIME
    return true;
#else
    return false;
#endif
}

// The lowest that fits: the same pages serve again.
void *arena_take(size_t n, size_t align, uintptr_t below)
{
    Arena &a = arena();
    char *at = up(a.base, align);
    for (auto &[p, size] : a.taken) {
        if (at <= p && n <= (size_t)(p - at)) break;
        at = up(p + size, align);
    }
    if (at > a.base + BYTES || n > (size_t)(a.base + BYTES - at)) return nullptr;
    if (below && reinterpret_cast<uintptr_t>(at) + n > below) return nullptr;
    if (at + n > a.high) {
        __asan_poison_memory_region(a.high, (size_t)(at + n - a.high));
        a.high = at + n;
    }
    a.taken[at] = n;
    return at;
}

void arena_give(void *p, size_t n)
{
    (void)n;
    arena().taken.erase(static_cast<char *>(p));
}

void arena_open(void *p, size_t n)
{
    unsigned char *pages = arena().pages(p);
    __asan_unpoison_memory_region(p, n);
    each_row(pages, 0, n / PAGE, [&](size_t i, size_t to) {
        if (pages[i]) std::memset(static_cast<char *>(p) + i * PAGE, 0, (to - i) * PAGE);
    });
    std::memset(pages, 1, n / PAGE);
}

void arena_close(void *p, size_t n, bool sparse)
{
    __asan_poison_memory_region(p, n);
    if (n < MUCH || !sparse) return;
    madvise(p, n, MADV_DONTNEED);
    std::memset(arena().pages(p), 0, n / PAGE);
}

void arena_protect(void *p, size_t n, bool access)
{
    if (access) __asan_unpoison_memory_region(p, n);
    else __asan_poison_memory_region(p, n);
}

bool arena_may_touch(const void *p, size_t n)
{
    return !__asan_region_is_poisoned(const_cast<void *>(p), n);
}

// Of much only what was touched, or all of it would be from now on.
void arena_copy(void *to, const void *from, size_t n)
{
    std::vector<unsigned char> resident(n / PAGE, 1);
    if (n >= MUCH) mincore(const_cast<void *>(from), n, resident.data());
    each_row(resident.data(), 0, n / PAGE, [&](size_t i, size_t j) {
        const size_t at = i * PAGE, bytes = (j - i) * PAGE;
        if (resident[i] & 1)
            std::memcpy(static_cast<char *>(to) + at, static_cast<const char *>(from) + at, bytes);
    });
}

} // namespace test
