#include "fake_os.h"

#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace test
{

namespace
{

constexpr int MAP_KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

FakeOs *self(void *user)
{
    return static_cast<FakeOs *>(user);
}

uintptr_t addr(const void *p)
{
    return reinterpret_cast<uintptr_t>(p);
}

uintptr_t round_up(uintptr_t x, size_t align)
{
    return (x + align - 1) & ~(uintptr_t)(align - 1);
}

} // namespace

FakeOs::FakeOs(bool keep) : keep_(keep && arena_possible())
{
}

FakeOs::~FakeOs()
{
    if (closed_) return;
    std::string report = close();
    if (!report.empty()) {
        std::fprintf(stderr, "fake OS: %s\n", report.c_str());
        std::abort();
    }
}

const hak_os *FakeOs::table()
{
    table_.size = sizeof(hak_os);
    table_.user = this;
    table_.reserve = [](void *u, size_t n, size_t align, uintptr_t below) {
        return self(u)->reserve(n, align, below);
    };
    table_.commit = [](void *u, void *p, size_t n) { return self(u)->commit(p, n); };
    table_.decommit = [](void *u, void *p, size_t n) { self(u)->decommit(p, n); };
    table_.release = [](void *u, void *p, size_t n) { self(u)->release(p, n); };
    table_.remap = [](void *u, void *p, size_t old_n, size_t n, uintptr_t below) {
        return self(u)->remap(p, old_n, n, below);
    };
    table_.huge = [](void *u, void *p, size_t n) {
        uintptr_t base;
        self(u)->counts.huge++;
        self(u)->find(addr(p), n, "huge outside a reservation", &base);
    };
    table_.protect = [](void *u, void *p, size_t n, bool access) { return self(u)->protect(p, n, access); };
    /* Threads come without a lock. What is not committed must not be touched. */
    table_.populate = [](void *u, void *p, size_t n) {
        __atomic_fetch_add(&self(u)->counts.populate, 1, __ATOMIC_RELAXED);
        if (self(u)->keep_ && !arena_may_touch(p, n)) self(u)->broken("populate of closed pages", p, n);
        for (size_t i = 0; i < n; i += PAGE)
            (void)static_cast<volatile char *>(p)[i];
    };
    table_.clock = [](void *u) {
        __atomic_fetch_add(&self(u)->counts.clock, 1, __ATOMIC_RELAXED); /* threads ask without a lock */
        return self(u)->now.fetch_add(self(u)->goes_on);
    };
    return &table_;
}

void FakeOs::broken(const char *what, const void *p, size_t n)
{
    char line[160];
    std::snprintf(line, sizeof line, "%s (%p, %zu bytes)\n", what, p, n);
    if (broken_.size() < 4000) broken_ += line;
}

bool FakeOs::refused()
{
    bool no = refuse_all_ || (fail_at_ && counts.requests() == fail_at_) ||
              (fail_each_ && counts.requests() % fail_each_ == 0);
    failed += no;
    return no;
}

FakeOs::Range *FakeOs::find(uintptr_t p, size_t n, const char *what, uintptr_t *base)
{
    auto it = ranges_.upper_bound(p);
    if (n == 0 || p % PAGE || n % PAGE || it == ranges_.begin()) {
        broken(what, reinterpret_cast<void *>(p), n);
        return nullptr;
    }
    --it;
    if (n > it->second.size || p - it->first > it->second.size - n) {
        broken(what, reinterpret_cast<void *>(p), n);
        return nullptr;
    }
    *base = it->first;
    return &it->second;
}

// Returns how many pages changed.
size_t FakeOs::set_pages(Range *range, uintptr_t base, uintptr_t p, size_t n, bool on)
{
    auto from = range->pages.begin() + (ptrdiff_t)((p - base) / PAGE), to = from + (ptrdiff_t)(n / PAGE);
    auto changed = std::count(from, to, (unsigned char)!on);
    std::fill(from, to, (unsigned char)on);
    return (size_t)changed;
}

bool FakeOs::usable(const void *p, size_t n) const
{
    auto it = ranges_.upper_bound(addr(p));
    if (it == ranges_.begin()) return false;
    --it;
    uintptr_t offset = addr(p) - it->first;
    if (offset > it->second.size || n > it->second.size - offset) return false;
    size_t first = offset / PAGE, last = (offset + std::max<size_t>(n, 1) - 1) / PAGE;
    return !std::memchr(&it->second.pages[first], 0, last + 1 - first);
}

size_t FakeOs::resident() const
{
    size_t pages = 0;
    for (const auto &entry : ranges_) {
        const unsigned char *committed = entry.second.pages.data();
        each_row(committed, 0, entry.second.pages.size(), [&](size_t i, size_t j) {
            std::vector<unsigned char> touched(committed[i] ? j - i : 0);
            if (!touched.empty() && mincore(reinterpret_cast<void *>(entry.first + i * PAGE),
                                            touched.size() * PAGE, touched.data()) == 0)
                pages += (size_t)std::count_if(touched.begin(), touched.end(),
                                               [](unsigned char c) { return (c & 1) != 0; });
        });
    }
    return pages * PAGE;
}

void *FakeOs::map(size_t n, size_t align, uintptr_t below)
{
    if (keep_) return arena_take(n, align, below);
    size_t total = n + (align > PAGE ? align : 0);
    if (total < n) return nullptr;
    void *p = MAP_FAILED;
    if (below != 0 && below < ((uintptr_t)1 << 47)) {
        for (uintptr_t at = (below - n) & ~(uintptr_t)(align - 1); n <= below && at >= MiB && at <= below;
             at -= std::max<size_t>(align, MiB)) {
            void *hint = reinterpret_cast<void *>(at);
            p = mmap(hint, n, PROT_NONE, MAP_KIND | MAP_FIXED_NOREPLACE, -1, 0);
            if (p == hint) return p;
            if (p != MAP_FAILED) munmap(p, n);
        }
        return nullptr;
    }
    p = mmap(nullptr, total, PROT_NONE, MAP_KIND, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    uintptr_t start = addr(p), use = round_up(start, align);
    if (use > start) munmap(p, use - start);
    if (start + total > use + n) munmap(reinterpret_cast<void *>(use + n), start + total - use - n);
    return reinterpret_cast<void *>(use);
}

bool FakeOs::close_pages(void *p, size_t n)
{
    if (keep_) arena_close(p, n, false);
    return keep_ || (madvise(p, n, MADV_DONTNEED) == 0 && mprotect(p, n, PROT_NONE) == 0);
}

// Pages that are committed already keep what they hold.
bool FakeOs::open_pages(Range *range, uintptr_t base, uintptr_t p, size_t n)
{
    const size_t first = (p - base) / PAGE;
    if (!keep_ && mprotect(reinterpret_cast<void *>(p), n, PROT_READ | PROT_WRITE) != 0) return false;
    if (keep_)
        each_row(range->pages.data(), first, first + n / PAGE, [&](size_t i, size_t j) {
            void *at = reinterpret_cast<void *>(base + i * PAGE);
            if (range->pages[i]) arena_protect(at, (j - i) * PAGE, true);
            else arena_open(at, (j - i) * PAGE);
        });
    committed_ += PAGE * set_pages(range, base, p, n, true);
    return true;
}

void *FakeOs::reserve(size_t n, size_t align, uintptr_t below)
{
    counts.reserve++;
    if (n == 0 || n % PAGE || (align & (align - 1))) {
        broken("reserve: size or alignment", nullptr, n);
        return nullptr;
    }
    largest_reserve = std::max(largest_reserve, n);
    if (refused()) return nullptr;
    if (reserve_bound_ && n > reserve_bound_) {
        failed++;
        return nullptr;
    }
    void *p = map(n, std::max(align, PAGE), below);
    if (!p) return nullptr;
    add(p, n);
    return p;
}

FakeOs::Range *FakeOs::add(void *p, size_t n)
{
    reserved_ += n;
    return &(ranges_[addr(p)] = Range{n, std::vector<unsigned char>(n / PAGE)});
}

int FakeOs::commit(void *p, size_t n)
{
    counts.commit++;
    uintptr_t base;
    Range *range = find(addr(p), n, "commit outside a reservation", &base);
    if (!range || refused()) return -1;
    if (open_pages(range, base, addr(p), n)) return 0;
    broken("mprotect of commit failed", p, n);
    return -1;
}

void FakeOs::decommit(void *p, size_t n)
{
    counts.decommit++;
    uintptr_t base;
    Range *range = find(addr(p), n, "decommit outside a reservation", &base);
    if (!range) return;
    if (!close_pages(p, n)) broken("madvise or mprotect of decommit failed", p, n);
    committed_ -= PAGE * set_pages(range, base, addr(p), n, false);
}

int FakeOs::protect(void *p, size_t n, bool on)
{
    counts.protect++;
    uintptr_t base;
    if (!find(addr(p), n, "protect outside a reservation", &base)) return -1;
    if (on && refused()) return -1;
    if (on && !usable(p, n)) broken("access to what is not committed", p, n);
    if (!keep_) return mprotect(p, n, on ? PROT_READ | PROT_WRITE : PROT_NONE);
    arena_protect(p, n, on);
    return 0;
}

void FakeOs::release(void *p, size_t n)
{
    counts.release++;
    auto it = ranges_.find(addr(p));
    if (it == ranges_.end() || it->second.size != n) {
        broken("release of what was not reserved so", p, n);
        return;
    }
    drop(it);
}

void FakeOs::drop(Ranges::iterator it)
{
    const Range &range = it->second;
    void *p = reinterpret_cast<void *>(it->first);
    size_t committed = 0;
    each_row(range.pages.data(), 0, range.pages.size(), [&](size_t i, size_t j) {
        if (!range.pages[i]) return;
        committed += (j - i) * PAGE;
        // Big blocks, not extents.
        if (keep_) arena_close(static_cast<char *>(p) + i * PAGE, (j - i) * PAGE, range.size < 4 * MiB);
    });
    if (keep_) arena_give(p, range.size);
    else munmap(p, range.size);
    committed_ -= committed;
    reserved_ -= range.size;
    ranges_.erase(it);
}

// Always moves the block: the harshest reading of the table.
void *FakeOs::remap(void *p, size_t old_n, size_t n, uintptr_t below)
{
    counts.remap++;
    auto it = ranges_.find(addr(p));
    if (it == ranges_.end() || it->second.size != old_n || n == 0 || n % PAGE) {
        broken("remap of what was not reserved so", p, old_n);
        return nullptr;
    }
    if (refused()) return nullptr;
    void *to = map(n, PAGE, below);
    if (!to) return nullptr;
    Range *range = add(to, n);
    const char *from = static_cast<char *>(p);
    char *dest = static_cast<char *>(to);
    each_row(it->second.pages.data(), 0, std::min(old_n, n) / PAGE, [&](size_t i, size_t j) {
        const size_t at = i * PAGE, bytes = (j - i) * PAGE;
        if (!it->second.pages[i]) return;
        open_pages(range, addr(to), addr(to) + at, bytes);
        if (keep_) arena_copy(dest + at, from + at, bytes);
        else std::memcpy(dest + at, from + at, bytes);
    });
    if (n > old_n) open_pages(range, addr(to), addr(to) + old_n, n - old_n);
    drop(it);
    return to;
}

std::string FakeOs::close()
{
    closed_ = true;
    std::string report = broken_;
    for (auto &entry : ranges_) {
        char line[100];
        std::snprintf(line, sizeof line, "leaked reservation %p, %zu bytes\n",
                      reinterpret_cast<void *>(entry.first), entry.second.size);
        report += line;
    }
    while (!ranges_.empty())
        drop(ranges_.begin());
    return report;
}

} // namespace test
