// Address space that stays with the process from one fake OS to the next, for the fuzz targets: to map and to
// protect pages anew for each input takes longer than all else that they do. Pages that are not to be touched
// are poisoned for AddressSanitizer instead of protected; without it there is no arena. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace test
{

// Calls f(from, to) for each row of equal entries in [from, to).
template <typename F>
void each_row(const unsigned char *entries, size_t from, size_t to, F f)
{
    for (size_t next; from < to; from = next) {
        for (next = from + 1; next < to && entries[next] == entries[from]; next++) {
        }
        f(from, next);
    }
}

// Whether this build can have it.
bool arena_possible();
// Addresses that nobody has; NULL = none below the bound.
void *arena_take(size_t n, size_t align, uintptr_t below);
void arena_give(void *p, size_t n);
// Pages that may be touched from now on, and are zero; those that may not, and lose what they hold. sparse:
// of many of them little was touched, and the kernel clears them faster.
void arena_open(void *p, size_t n);
void arena_close(void *p, size_t n, bool sparse);
// The same for pages that keep what they hold.
void arena_protect(void *p, size_t n, bool access);
bool arena_may_touch(const void *p, size_t n);
// Contents from open pages to others.
void arena_copy(void *to, const void *from, size_t n);

} // namespace test
