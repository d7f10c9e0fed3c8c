// What a process with the pages of the system maps for a space: what is used and no more, so that mlockall,
// core dumps and limits of the process meet nothing else; that sizes are refused which the machine cannot
// have; and that the n-th call may fail, whichever it is.
#include "heap.h"
#include "system.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

using namespace test;

namespace
{

std::atomic<long> calls_left{-1}; // of mmap and mprotect until one fails; below 0 = none does

bool fails()
{
    return calls_left >= 0 && calls_left-- == 0;
}

} // namespace

extern "C" void *__real_mmap(void *p, size_t n, int protection, int flags, int file, off_t at);
extern "C" void *__wrap_mmap(void *p, size_t n, int protection, int flags, int file, off_t at);
extern "C" int __real_mprotect(void *p, size_t n, int protection);
extern "C" int __wrap_mprotect(void *p, size_t n, int protection);

void *__wrap_mmap(void *p, size_t n, int protection, int flags, int file, off_t at)
{
    if (!fails()) return __real_mmap(p, n, protection, flags, file, at);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __wrap_mprotect(void *p, size_t n, int protection)
{
    if (!fails()) return __real_mprotect(p, n, protection);
    errno = ENOMEM;
    return -1;
}

namespace
{

struct Mapped {
    size_t maps = 0, bytes = 0;
    size_t writable = 0; // by this process alone: what core dumps and mlockall meet, and RLIMIT_DATA counts
};

Mapped mapped()
{
    std::ifstream file("/proc/self/maps");
    Mapped sum;
    for (std::string line; std::getline(file, line); sum.maps++) {
        unsigned long from = 0, to = 0;
        char rights[8] = "";
        if (std::sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, rights) != 3) continue;
        sum.bytes += to - from;
        if (rights[1] == 'w' && rights[3] == 'p') sum.writable += to - from;
    }
    return sum;
}

char overcommit()
{
    char mode = '0';
    std::ifstream("/proc/sys/vm/overcommit_memory").get(mode);
    return mode;
}

std::vector<void *> fill_up(hak_ctx *ctx, size_t total, size_t n, bool touch = true)
{
    std::vector<void *> blocks;
    blocks.reserve(total / n + 1);
    for (size_t sum = 0; sum < total; sum += n) {
        void *p = hak_alloc(ctx, n);
        if (!p) break;
        if (touch) std::memset(p, 1, std::min<size_t>(n, 16));
        blocks.push_back(p);
    }
    return blocks;
}

void free_all(hak_ctx *ctx, const std::vector<void *> &blocks)
{
    for (void *p : blocks)
        hak_free(ctx, p);
}

// Runs it in a child process, where limits may be set; it returns 0, or the number of what was wrong.
int in_child(const std::function<int()> &f)
{
    const pid_t pid = fork();
    if (pid == 0) _exit(f());
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

bool limited(int resource, size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    return setrlimit(resource, &limit) == 0;
}

bool thread_starts()
{
    pthread_t thread;
    if (pthread_create(
            &thread, nullptr, [](void *p) { return p; }, nullptr) != 0)
        return false;
    return pthread_join(thread, nullptr) == 0;
}

bool maps_more(size_t n)
{
    void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && munmap(p, n) == 0;
}

// Where nobody else is; false = the kernel would not.
bool map_foreign(char *at)
{
    void *p = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == at) return true;
    if (p != MAP_FAILED) munmap(p, PAGE);
    return false;
}

char *chunk_of(const void *p)
{
    return reinterpret_cast<char *>(addr(p) & ~(uintptr_t)(2 * MiB - 1));
}

#ifdef TEST_SLOW_BUILD
constexpr bool PLAIN = false; // sanitizers have addresses of their own, and no room for more
#else
constexpr bool PLAIN = true;
#endif

} // namespace

TEST_CASE("a default space maps what it uses, and little more")
{
    if (!PLAIN) return;
    const bool labelled = GENERATE(false, true);
    const Mapped before = mapped();
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    REQUIRE(ctx != nullptr);
    if (labelled) REQUIRE(hak_label_define(ctx, "a") != 0);
    REQUIRE(hak_alloc(ctx, 100) != nullptr);
    Mapped now = mapped();
    CHECK(now.bytes - before.bytes <= 4 * MiB);
    CHECK(stats_of(ctx).reserved_bytes <= 4 * MiB);
    const std::vector<void *> blocks = fill_up(ctx, 100 * MiB, 100);
    now = mapped();
    // Blocks of 100 bytes take 104; label bytes for all that is to come are opened in steps.
    CHECK(now.bytes - before.bytes <= 140 * MiB);
    CHECK(now.maps - before.maps <= 32);
    free_all(ctx, blocks);
    hak_ctx_trim(ctx);
    CHECK(mapped().bytes <= before.bytes + blocks.capacity() * sizeof(void *) + (labelled ? 24 : 8) * MiB);
    require_sound(ctx);
    hak_ctx_destroy(ctx);
    CHECK(mapped().bytes <= before.bytes + blocks.capacity() * sizeof(void *) + MiB);
}

TEST_CASE("a chunk is opened by a call, and stays open")
{
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.retained_bytes = 4 * GiB;
    options.huge_from = HAK_NONE;
    SECTION("grown")
    {
    }
    SECTION("reserved")
    {
        options.reserve = GiB;
    }
    hak_space *space = hak_space_new(&options);
    Options of_ctx = ctx_options();
    of_ctx.populate_from = HAK_NONE;
    hak_ctx *ctx = hak_ctx_new(space, &of_ctx);
    REQUIRE(ctx != nullptr);
    const uint64_t before = stats_of(ctx).os_calls;
    free_all(ctx, fill_up(ctx, 128 * MiB, 30000));
    const uint64_t first = stats_of(ctx).os_calls - before;
    CHECK(first >= 64); // each was opened
    CHECK(first <= 80 + 80 / 4);
    for (size_t n : {30000, 100, 200000})
        free_all(ctx, fill_up(ctx, 64 * MiB, n));
    CHECK(stats_of(ctx).os_calls - before == first);
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
}

TEST_CASE("a reserve that is asked for is reserved at once, without access")
{
    const Mapped before = mapped();
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.reserve = GiB;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    {
        TestCtx ctx(space);
        REQUIRE(hak_alloc(ctx, 100) != nullptr);
        const Mapped now = mapped();
        CHECK(now.bytes - before.bytes >= GiB);
        CHECK(now.writable - before.writable <= 4 * MiB);
        CHECK(stats_of(ctx).reserved_bytes >= GiB);
        free_all(ctx, fill_up(ctx, 64 * MiB, 5000));
        hak_ctx_trim(ctx);
        CHECK(mapped().writable - before.writable <= 8 * MiB);
        for (void *p : fill_up(ctx, 64 * MiB, 5000))
            hak_free(ctx, p);
        require_sound(ctx);
    }
    hak_space_delete(space);
}

TEST_CASE("what was closed is zero when it is opened again")
{
    TestCtx ctx(nullptr);
    for (int round = 0; round < 3; round++) {
        std::vector<char *> blocks;
        for (int i = 0; i < 400; i++) {
            blocks.push_back(static_cast<char *>(hak_calloc(ctx, 1, 100000)));
            REQUIRE(blocks.back() != nullptr);
            CHECK(all_bytes(blocks.back(), 100000, 0));
            std::memset(blocks.back(), 1, 100000);
        }
        for (size_t i = 0; i < blocks.size(); i++)
            if (i % 100) hak_free(ctx, blocks[i]);
        CHECK(hak_ctx_trim(ctx) > 20 * MiB);
        for (size_t i = 0; i < blocks.size(); i += 100) {
            CHECK(all_bytes(blocks[i], 100000, 1));
            hak_free(ctx, blocks[i]);
        }
        require_sound(ctx);
    }
}

TEST_CASE("holes do not use up the mappings of the process")
{
    if (!PLAIN || overcommit() == '2') return;
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    REQUIRE(ctx != nullptr);
    // Two blocks a chunk, never touched.
    std::vector<void *> blocks = fill_up(ctx, 36 * GiB, MiB, false);
    REQUIRE(blocks.size() == 36 * 1024);
    const size_t before = mapped().maps;
    for (void *&p : blocks)
        if (addr(p) / (2 * MiB) % 2 == 0) {
            hak_free(ctx, p);
            p = nullptr;
        }
    hak_ctx_trim(ctx);
    const size_t after = mapped().maps;
    CHECK(after - before > 4000);
    CHECK(after - before < 16384); // a quarter of vm.max_map_count
    CHECK(thread_starts());
    for (void *&p : blocks)
        if (!p) REQUIRE((p = hak_alloc(ctx, MiB)) != nullptr);
    CHECK(mapped().maps - before < 16384);
    require_sound(ctx);
    hak_ctx_destroy(ctx);
}

TEST_CASE("holes of single units, where each page counts, do not use up the mappings of the process")
{
    if (!PLAIN) return;
    hak_os os;
    hak_os_default(&os);
    REQUIRE(hak_os_counted(&os));
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.os = &os;
    options.reserve = GiB;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    {
        TestCtx ctx(space);
        for (size_t n : {(size_t)4000, (size_t)16000, (size_t)60000}) {
            CAPTURE(n);
            const size_t before = mapped().maps;
            std::vector<void *> blocks = fill_up(ctx, 640 * MiB, n, false);
            REQUIRE(blocks.size() >= 640 * MiB / n);
            for (size_t i = 0; i < blocks.size(); i += 2)
                hak_free(ctx, blocks[i]);
            hak_ctx_trim(ctx);
            CHECK(mapped().maps - before < 2 * 8192 + 100);
            for (size_t i = 0; i < blocks.size(); i += 2)
                REQUIRE((blocks[i] = hak_alloc(ctx, n)) != nullptr);
            require_sound(ctx);
            free_all(ctx, blocks);
            hak_ctx_trim(ctx);
        }
    }
    hak_space_delete(space);
}

// A process of its own makes these calls: qemu keeps the addresses of a mapping that the kernel refuses, and
// spaces of later cases would find no room to grow.
TEST_CASE("sizes that the machine cannot have are refused")
{
    if (overcommit() == '1') return; // the kernel refuses nothing
    const int wrong = in_child([] {
        const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * PAGE;
        hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
        char *p = ctx ? static_cast<char *>(hak_alloc(ctx, 2 * MiB)) : nullptr;
        if (!p) return 1;
        fill(p, 2 * MiB, 1);
        for (size_t n = 16 * machine; n < (size_t)1 << 46; n *= 2) {
            if (hak_alloc(ctx, n)) return 2;
            if (hak_calloc(ctx, n / 16, 16)) return 3;
            if (hak_aligned_alloc(ctx, 64 * MiB, n)) return 4;
            if (hak_realloc(ctx, p, n)) return 5;
            if (hak_realloc(ctx, hak_alloc(ctx, 100), n)) return 6;
        }
        if (!filled(p, 2 * MiB, 1)) return 7;
        return hak_ctx_check(ctx, nullptr, nullptr) ? 0 : 8;
    });
    CHECK(wrong == 0);
}

TEST_CASE("a limit of addresses is filled, and leaves room for others meanwhile")
{
    if (!PLAIN) return;
    for (size_t n : {10 * MiB, 2 * MiB, (size_t)1000}) {
        CAPTURE(n);
        const int wrong = in_child([&] {
            if (!limited(RLIMIT_AS, mapped().bytes + 200 * MiB)) return 1;
            hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
            if (!ctx || !hak_alloc(ctx, 100)) return 2;
            if (!maps_more(150 * MiB)) return 3;
            const std::vector<void *> blocks = fill_up(ctx, 400 * MiB, n);
            if (blocks.size() * n < 170 * MiB || blocks.size() * n > 200 * MiB) return 4;
            free_all(ctx, blocks);
            // Small blocks give their chunks back, where a large one finds no room.
            if (!hak_alloc(ctx, 150 * MiB)) return 5;
            return hak_ctx_check(ctx, nullptr, nullptr) ? 0 : 6;
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("a limit that the program sets while it runs leaves room for others")
{
    if (!PLAIN) return;
    const int resource = GENERATE(RLIMIT_AS, RLIMIT_DATA);
    const int wrong = in_child([&] {
        hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
        if (!ctx || fill_up(ctx, 20 * MiB, 1000).empty()) return 1;
        const Mapped now = mapped();
        const size_t bytes = resource == RLIMIT_AS ? now.bytes : now.writable;
        if (!limited(resource, bytes + 100 * MiB)) return 2;
        if (!thread_starts() || !maps_more(80 * MiB)) return 3;
        const std::vector<void *> small = fill_up(ctx, 200 * MiB, 1000);
        if (small.size() * 1000 > 100 * MiB || small.size() * 1000 < 70 * MiB) return 4;
        free_all(ctx, small);
        hak_ctx_trim(ctx);
        if (!thread_starts() || !maps_more(70 * MiB)) return 5;
        const std::vector<void *> large = fill_up(ctx, 200 * MiB, 5 * MiB);
        if (large.size() * 5 > 100 || large.size() * 5 < 80) return 6;
        free_all(ctx, large);
        hak_ctx_trim(ctx);
        return thread_starts() && maps_more(70 * MiB) && hak_ctx_check(ctx, nullptr, nullptr) ? 0 : 7;
    });
    CHECK(wrong == 0);
}

TEST_CASE("mlockall locks what is used")
{
    if (!PLAIN) return;
    const size_t reserve = GENERATE((size_t)0, 8 * GiB);
    const int wrong = in_child([&] {
        const size_t before = mapped().writable;
        SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
        options.reserve = reserve;
        hak_space *space = hak_space_new(&options);
        hak_ctx *ctx = hak_ctx_new(space, nullptr);
        if (!ctx || !hak_alloc(ctx, 100)) return 1;
        // The machine's memory is not at stake: nothing else can become resident.
        if (mapped().writable - before > 8 * MiB) return 2;
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 0; // not permitted here
        const std::vector<void *> blocks = fill_up(ctx, 20 * MiB, 1000);
        if (blocks.size() < 20000) return 0; // more than may be locked
        const size_t resident = resident_pages(chunk_of(blocks[0]), 2 * MiB);
        free_all(ctx, blocks);
        hak_ctx_trim(ctx);
        if (resident != 512) return 3;
        return hak_ctx_check(ctx, nullptr, nullptr) ? 0 : 4;
    });
    CHECK(wrong == 0);
}

TEST_CASE("the n-th call of the system fails")
{
    const size_t reserve = GENERATE((size_t)0, 64 * MiB);
    const size_t before = mapped().bytes;
    // On Windows each unit is committed by a call; of its thousands not all are tried.
    const long most = system_is("windows") ? 20000 : 300;
    long n = 0;
    bool met = true;
    for (; met && n < most; n += n < 300 ? 1 : 61) {
        calls_left = n;
        SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
        options.reserve = reserve;
        hak_space *space = hak_space_new(&options);
        hak_ctx *ctx = space ? hak_ctx_new(space, nullptr) : nullptr;
        if (ctx) {
            hak_label label = hak_label_define(ctx, "a");
            for (int round = 0; round < 2; round++) {
                std::vector<void *> blocks;
                for (int i = 0; i < 9000; i++) {
                    const size_t size = i % 3000 == 2999 ? 3 * MiB : i % 50 == 0 ? 100000 : 100;
                    blocks.push_back(hak_alloc_cs(ctx, size, label, 0));
                    if (blocks.back()) std::memset(blocks.back(), 1, 100);
                }
                blocks.push_back(hak_realloc(ctx, hak_alloc(ctx, 2 * MiB), 9 * MiB));
                if (!hak_ctx_check(ctx, nullptr, nullptr)) FAIL("not sound after call " << n);
                free_all(ctx, blocks);
                hak_ctx_trim(ctx);
            }
            if (stats_of(ctx).live_blocks > 1)
                FAIL("blocks are left after call " << n); // one may not have grown
            hak_ctx_destroy(ctx);
        }
        met = calls_left < 0;
        calls_left = -1;
        hak_space_delete(space);
    }
    CHECK(n > 10);
    CHECK_FALSE(met);
    if (PLAIN) CHECK(mapped().bytes - before < 8 * MiB);
}

TEST_CASE("somebody else's mapping where an extent would grow, or was closed")
{
    if (!PLAIN) return;
    TestCtx ctx(nullptr);
    char *first = static_cast<char *>(hak_alloc(ctx, 100)), *foreign = nullptr;
    SECTION("behind what is open")
    {
        foreign = chunk_of(first) + 2 * MiB;
        REQUIRE(map_foreign(foreign));
    }
    SECTION("in what was closed")
    {
        free_all(ctx, fill_up(ctx, 20 * MiB, 30000));
        hak_ctx_trim(ctx);
        foreign = chunk_of(first) + 4 * MiB;
        REQUIRE(map_foreign(foreign));
    }
    fill(foreign, PAGE, 7);
    const std::vector<void *> blocks = fill_up(ctx, 40 * MiB, 30000);
    CHECK(blocks.size() * 30000 >= 40 * MiB);
    CHECK_FALSE(hak_owns(ctx, foreign));
    for (void *p : blocks)
        if (chunk_of(p) == chunk_of(foreign)) FAIL("a block is there");
    require_sound(ctx);
    free_all(ctx, blocks);
    hak_ctx_trim(ctx);
    CHECK(filled(foreign, PAGE, 7));
    munmap(foreign, PAGE);
}

TEST_CASE("a forked child goes on where its parent was")
{
    TestCtx ctx(nullptr);
    fill_up(ctx, 10 * MiB, 1000);
    const int wrong = in_child([&] {
        const std::vector<void *> blocks = fill_up(ctx, 40 * MiB, 1000);
        free_all(ctx, blocks);
        hak_ctx_trim(ctx);
        return blocks.size() >= 40000 && hak_ctx_check(ctx, nullptr, nullptr) ? 0 : 1;
    });
    CHECK(wrong == 0);
    require_sound(ctx);
}

TEST_CASE("threads of a shared context free blocks that are where the space grew later")
{
    Options options = ctx_options();
    options.shared = true;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx != nullptr);
    std::vector<void *> blocks;
    std::atomic<int> step{0};
    std::thread other([&] {
        hak_free(ctx, hak_alloc(ctx, 100));
        step = 1;
        while (step != 2)
            std::this_thread::yield();
        for (void *p : blocks)
            hak_free(ctx, p);
    });
    while (step != 1)
        std::this_thread::yield();
    blocks = fill_up(ctx, 80 * MiB, 1000);
    step = 2;
    other.join();
    hak_ctx_flush(ctx);
    CHECK(hak_ctx_live_bytes(ctx) == 0);
    require_sound(ctx);
    hak_ctx_destroy(ctx);
}

TEST_CASE("which bytes of a range belong to a space")
{
    SpaceOptions options(HAK_SPACE_OPTIONS_INIT);
    options.reserve = 64 * MiB;
    hak_space *space = hak_space_new(&options);
    REQUIRE(space != nullptr);
    {
        TestCtx ctx(space);
        char *small = static_cast<char *>(hak_alloc(ctx, 100));
        char *big = static_cast<char *>(hak_alloc(ctx, 5 * MiB));
        std::vector<void *> others = fill_up(ctx, 40 * MiB, 2 * MiB);
        CHECK(hak_space_bytes_within(space, small, PAGE) == PAGE);
        CHECK(hak_space_bytes_within(space, big + MiB, MiB) == MiB);
        CHECK(hak_space_bytes_within(space, nullptr, SIZE_MAX) == stats_of(ctx).reserved_bytes);
        for (void *p : others)
            CHECK(hak_space_bytes_within(space, p, 2 * MiB) == 2 * MiB);
        int local;
        CHECK(hak_space_bytes_within(space, &local, sizeof local) == 0);
        hak_free(ctx, big);
        hak_ctx_trim(ctx);
        CHECK(hak_space_bytes_within(space, big + MiB, MiB) == 0);
    }
    hak_space_delete(space);
}

TEST_CASE("space: extents of any size hold something wherever the OS puts them")
{
    struct Skewed {
        hak_os os{};
        size_t skew = 0;
        std::vector<std::pair<char *, size_t>> maps;
    } skewed;
    hak_os_default(&skewed.os);
    skewed.os.user = &skewed;
    // What is asked for at a page's boundary only is put `skew` bytes behind one of 2 MiB.
    skewed.os.reserve = [](void *user, size_t n, size_t align, uintptr_t) -> void * {
        Skewed *s = static_cast<Skewed *>(user);
        size_t skew = align <= PAGE ? s->skew : 0;
        char *p = static_cast<char *>(mmap(nullptr, n + 4 * MiB, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (p == MAP_FAILED) return nullptr;
        s->maps.push_back({p, n + 4 * MiB});
        return reinterpret_cast<char *>((addr(p) + 2 * MiB - 1) & ~(uintptr_t)(2 * MiB - 1)) + skew;
    };
    skewed.os.release = [](void *, void *, size_t) {};
    skewed.os.remap = nullptr;
    for (size_t reserve : {4 * MiB, 4 * MiB + 512 * KiB, 5 * MiB, 6 * MiB, 8 * MiB})
        for (skewed.skew = 0; skewed.skew < 2 * MiB; skewed.skew += 60 * KiB) {
            CAPTURE(reserve, skewed.skew);
            hak_space_options options = HAK_SPACE_OPTIONS_INIT;
            options.os = &skewed.os;
            options.reserve = reserve;
            hak_space *space = hak_space_new(&options);
            REQUIRE(space != nullptr);
            hak_ctx *ctx = hak_ctx_new(space, nullptr);
            REQUIRE(ctx != nullptr);
            for (int i = 0; i < 12; i++) // more than the first extent has
                REQUIRE(hak_alloc(ctx, 900 * KiB) != nullptr);
            hak_space_delete(space);
            for (auto &map : skewed.maps)
                munmap(map.first, map.second);
            skewed.maps.clear();
        }
}
