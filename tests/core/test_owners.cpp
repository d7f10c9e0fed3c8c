// Who owns the memory at an address: units of extents, and blocks with mappings of their own.
#include "shared.h"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

using namespace test;

namespace
{

const char *const NOWHERE = "of no heap";

// Big blocks and their contexts, beside what hakmem says of them.
struct Owners {
    struct Entry {
        size_t n;
        hak_ctx *ctx;
    };
    std::map<uintptr_t, Entry> blocks;

    hak_ctx *of(uintptr_t at) const
    {
        auto it = blocks.upper_bound(at);
        if (it == blocks.begin()) return nullptr;
        --it;
        return at - it->first < it->second.n ? it->second.ctx : nullptr;
    }
    void add(hak_ctx *ctx, void *p)
    {
        REQUIRE(p != nullptr);
        REQUIRE(of(addr(p)) == nullptr);
        blocks[addr(p)] = {hak_usable_size(ctx, p), ctx};
    }
    void *any(Random &random, hak_ctx **ctx)
    {
        auto it = blocks.begin();
        std::advance(it, random.below(blocks.size()));
        *ctx = it->second.ctx;
        return reinterpret_cast<void *>(it->first);
    }
};

// A mapping of its own, without room behind it and never kept: its end is the end of its block.
Options all_given_back()
{
    Options options = ctx_options();
    options.big_cache = HAK_NONE;
    return options;
}

// A context for whoever a thread works for, as the Rust crate's scopes are: it may end while others free its
// blocks. Then it is an orphan, and one thread at a time frees in it.
struct Scopes {
    struct Scope {
        hak_ctx *ctx = nullptr;
        std::atomic<size_t> visitors{0};
        std::atomic<bool> orphan{false};
        size_t left = 0; // under the lock
    };
    hak_space *space;
    hak_ctx *program;
    std::mutex lock;
    std::atomic<size_t> count{0};

    explicit Scopes(hak_space *s) : space(s), program(context(nullptr))
    {
    }
    ~Scopes()
    {
        hak_ctx_destroy(program);
    }
    hak_ctx *context(void *user)
    {
        Options options = ctx_options();
        options.shared = true;
        options.user = user;
        return hak_ctx_new(space, &options);
    }
    Scope *begin()
    {
        Scope *scope = new Scope;
        scope->ctx = context(scope);
        count++;
        return scope;
    }
    void end(Scope *scope)
    {
        std::unique_lock<std::mutex> held(lock);
        scope->orphan = true;
        while (scope->visitors)
            std::this_thread::yield();
        hak_stats stats;
        stats.size = sizeof stats;
        hak_ctx_stats(scope->ctx, &stats);
        scope->left = stats.live_blocks;
        if (scope->left) {
            hak_ctx_retire(scope->ctx);
            return;
        }
        hak_ctx_destroy(scope->ctx);
        held.unlock();
        forget(scope);
    }
    void forget(Scope *scope)
    {
        delete scope;
        count--;
    }
    void free(Scope *current, void *p, size_t n)
    {
        if (hak_free_if_owned(current ? current->ctx : program, p, n)) return;
        hak_ctx *ctx = hak_ctx_of(space, p);
        Scope *scope = static_cast<Scope *>(hak_ctx_user(ctx));
        if (!scope || scope == current) {
            hak_free(ctx, p);
            return;
        }
        scope->visitors++;
        const bool lives = !scope->orphan;
        if (lives) hak_free(ctx, p);
        scope->visitors--;
        if (lives) return;
        std::unique_lock<std::mutex> held(lock);
        const bool last = --scope->left == 0;
        hak_free(ctx, p);
        held.unlock();
        if (last) forget(scope);
    }
};

} // namespace

TEST_CASE("ownership of arbitrary pointers")
{
    TestSpace s, elsewhere;
    TestCtx a(s.space), b(s.space), far(elsewhere.space);
    void *of_a = hak_alloc(a, 100), *big_of_a = hak_alloc(a, 2 * MiB), *of_far = hak_alloc(far, 100);
    int local = 0;
    CHECK(hak_owns(a, of_a));
    CHECK(hak_owns(a, static_cast<char *>(of_a) + 50));
    CHECK(hak_owns(a, static_cast<char *>(big_of_a) + MiB));
    CHECK_FALSE(hak_owns(b, of_a));
    CHECK_FALSE(hak_owns(b, big_of_a));
    CHECK_FALSE(hak_owns(a, of_far));
    CHECK(hak_ctx_of(s.space, static_cast<char *>(of_a) + 50) == a.ctx);
    CHECK(hak_ctx_of(s.space, static_cast<char *>(big_of_a) + MiB) == a.ctx);
    CHECK(hak_ctx_of(s.space, of_far) == nullptr);
    CHECK(hak_ctx_of(elsewhere.space, of_far) == far.ctx);
    for (const void *p :
         {(const void *)nullptr, (const void *)&local, (const void *)NOWHERE, (const void *)"text"}) {
        CHECK_FALSE(hak_owns(a, p));
        CHECK(hak_ctx_of(s.space, p) == nullptr);
    }
    Random random(8);
    for (int i = 0; i < 100000; i++) {
        // Anywhere, and in the neighbourhood of real blocks, where nothing may be committed.
        uintptr_t value = random.next() >> random.below(64);
        if (i % 3 == 0)
            value = addr(i % 2 ? of_a : big_of_a) + (uintptr_t)random.below(512 * MiB) - 256 * MiB;
        const void *p = reinterpret_cast<const void *>(value);
        hak_ctx *owner = hak_ctx_of(s.space, p);
        if (owner != nullptr && owner != a.ctx && owner != b.ctx) FAIL("owner of " << p);
        if (hak_owns(a, p) != (owner == a.ctx) || hak_owns(b, p) != (owner == b.ctx))
            FAIL("hak_owns and hak_ctx_of differ about " << p);
        if (owner && !s.os.usable(p, 1) && value % PAGE == 0) (void)hak_usable_size(a, p);
    }
    // hak_space_free: for hosts that lost the context.
    hak_space_free(s.space, of_a);
    CHECK(stats_of(a).live_blocks == 1);
    hak_space_free(s.space, big_of_a);
    CHECK(stats_of(a).live_blocks == 0);
    hak_space_free(s.space, of_far);
    hak_space_free(s.space, &local);
    hak_space_free(s.space, nullptr);
    CHECK(stats_of(far).live_blocks == 1);
    require_sound(a);
    require_sound(far);
}

TEST_CASE("the owner of a big block is found at each of its ends, and nobody beyond")
{
    TestSpace s;
    Options options = all_given_back();
    TestCtx a(s.space, &options), b(s.space, &options);
    Owners owners;
    Random random(18);
    auto check_at = [&](uintptr_t at) {
        const void *p = reinterpret_cast<const void *>(at);
        hak_ctx *owner = owners.of(at);
        if (hak_ctx_of(s.space, p) != owner || hak_owns(a, p) != (owner == a.ctx) ||
            hak_owns(b, p) != (owner == b.ctx))
            FAIL("owner of " << p);
    };
    for (int i = 0; i < 1500; i++) {
        hak_ctx *ctx = random.below(2) ? a : b;
        size_t n = MiB + PAGE * (1 + random.below(64)),
               what = random.below(owners.blocks.size() < 200 ? 3 : 6);
        if (what < 2 || owners.blocks.empty()) {
            owners.add(ctx, hak_alloc(ctx, n));
        } else {
            void *p = owners.any(random, &ctx);
            owners.blocks.erase(addr(p));
            if (what == 2) owners.add(ctx, hak_realloc(ctx, p, n));
            else hak_free(ctx, p);
        }
        if (i % 10) continue;
        for (const auto &[start, entry] : owners.blocks)
            for (uintptr_t at : {start - 1, start, start + entry.n / 2, start + entry.n - 1, start + entry.n})
                check_at(at);
    }
    for (const auto &[start, entry] : owners.blocks)
        hak_free(entry.ctx, reinterpret_cast<void *>(start));
    CHECK(stats_of(a).big_blocks == 0);
    CHECK(stats_of(b).big_blocks == 0);
}

TEST_CASE("a freed big block that is kept belongs to nobody, and to its context when it is handed out again")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (int i = 0; i < 8; i++) /* the cache follows the heap */
        REQUIRE(hak_alloc(ctx, MiB));
    char *p = static_cast<char *>(hak_alloc_cs(ctx, 2 * MiB, 0, 7));
    hak_free(ctx, p);
    CHECK_FALSE(hak_owns(ctx, p + MiB));
    CHECK(hak_ctx_of(s.space, p + MiB) == nullptr);
    REQUIRE(hak_alloc_cs(ctx, 2 * MiB, 0, 7) == p);
    CHECK(hak_owns(ctx, p + MiB));
    CHECK(hak_ctx_of(s.space, p + MiB) == ctx.ctx);
}

TEST_CASE("destroying a context and deleting a space leave no big block behind")
{
    TestSpace s;
    Options options = all_given_back();
    TestCtx stays(s.space, &options);
    std::vector<void *> of_stays, of_gone;
    hak_ctx *gone = hak_ctx_new(s.space, &options);
    for (int i = 0; i < 100; i++) {
        of_stays.push_back(hak_alloc(stays, MiB + PAGE));
        of_gone.push_back(hak_alloc(gone, MiB + PAGE));
    }
    hak_ctx_destroy(gone);
    for (const void *p : of_gone)
        CHECK(hak_ctx_of(s.space, p) == nullptr);
    for (const void *p : of_stays)
        CHECK(hak_ctx_of(s.space, p) == stays.ctx);
    // What is live goes with the space of another fake OS, which complains of what it does not get back.
    TestSpace t;
    hak_ctx *live = hak_ctx_new(t.space, &options);
    for (int i = 0; i < 50; i++)
        REQUIRE(hak_alloc(live, MiB + PAGE));
}

TEST_CASE("owners are told beside threads that allocate, resize and free big blocks")
{
    Shared s([](Options &o) { o.big_cache = 8 * MiB; });
    char *fixed = static_cast<char *>(hak_alloc(s, 3 * MiB));
    std::atomic<int> working{2};
    Crew crew;
    for (unsigned t = 0; t < 2; t++)
        crew.add([&, t] {
            Random random(t);
            for (int i = 0; i < 40 * (int)EFFORT; i++) {
                void *p = hak_alloc(s, MiB + random.below(3 * MiB));
                expect(p && hak_owns(s, p), "a new block is the context's");
                p = hak_realloc(s, p, MiB + random.below(3 * MiB));
                expect(p && hak_ctx_of(s.space.space, p) == s.ctx, "a resized one, too");
                hak_free(s, p);
            }
            hak_ctx_thread_done(s);
            working--;
        });
    crew.add([&] {
        Random random(3);
        while (working && !crew.failed) {
            size_t inside = random.below(3 * MiB);
            expect(hak_owns(s, fixed + inside), "a block that stays");
            expect(hak_ctx_of(s.space.space, fixed + inside) == s.ctx, "a block that stays");
            (void)hak_owns(s, fixed + random.below(64 * MiB) - 32 * MiB);
        }
    });
    CHECK(crew.join() == "");
    hak_free(s, fixed);
    require_empty(s);
}

TEST_CASE("a free that asks the likely context first")
{
    for (bool shared : {false, true}) {
        INFO((shared ? "shared" : "local"));
        TestSpace s;
        Options options = ctx_options();
        options.shared = shared;
        TestCtx mine(s.space, &options), other(s.space, &options);
        const auto live = [](hak_ctx *ctx) {
            hak_stats stats;
            stats.size = sizeof stats;
            hak_ctx_stats(ctx, &stats);
            return stats.live_blocks;
        };
        int local = 0;
        CHECK_FALSE(hak_free_if_owned(mine, nullptr, 0));
        CHECK_FALSE(hak_free_if_owned(mine, &local, sizeof local));
        for (size_t n : {1, 40, 1000, 5000, 100000, 3000000}) {
            for (int count : {3, 2000}) { // few are packed, many have slabs
                if (n > 5000 && count > 3) continue;
                INFO(count << " blocks of " << n);
                std::vector<void *> of_mine, of_other;
                for (int i = 0; i < count; i++) {
                    of_mine.push_back(hak_alloc(mine, n));
                    of_other.push_back(hak_alloc(other, n));
                    REQUIRE((of_mine.back() && of_other.back()));
                }
                for (void *p : of_other)
                    if (hak_free_if_owned(mine, p, n)) FAIL("freed in a context that does not own it");
                CHECK(live(other) == size_t(count));
                const auto free_all = [&](hak_ctx *ctx, std::vector<void *> &blocks) {
                    int freed = 0;
                    for (void *p : blocks)
                        freed += hak_free_if_owned(ctx, p, n);
                    blocks.clear();
                    return freed;
                };
                CHECK(free_all(mine, of_mine) == count);
                int freed = 0;
                if (shared) std::thread([&] { freed = free_all(other, of_other); }).join();
                else freed = free_all(other, of_other);
                CHECK(freed == count);
                CHECK(live(mine) == 0);
                CHECK(live(other) == 0);
            }
        }
    }
}

TEST_CASE("contexts that end while others free in them")
{
    struct Block {
        unsigned char *p;
        size_t n;
        unsigned char tag;
    };
    TestSpace space;
    Scopes scopes(space.space);
    std::mutex lock;
    std::vector<Block> mailbox;
    std::atomic<size_t> wrong{0};
    const auto take = [&](Block *b) {
        std::lock_guard<std::mutex> held(lock);
        if (mailbox.empty()) return false;
        *b = mailbox.back();
        mailbox.pop_back();
        return true;
    };
    const auto work = [&](unsigned thread) {
        Random random(thread + 1);
        for (int round = 0; round < 60; round++) {
            Scopes::Scope *scope = scopes.begin();
            for (int i = 0; i < 20; i++) {
                Scopes::Scope *current = random.below(3) ? scope : nullptr;
                Block b = {nullptr, 1 + random.below(random.below(9) ? 700 : 40000),
                           (unsigned char)(thread + 1)};
                b.p = static_cast<unsigned char *>(hak_alloc(current ? current->ctx : scopes.program, b.n));
                if (!b.p) continue;
                std::memset(b.p, b.tag, b.n);
                if (random.below(2)) {
                    scopes.free(current, b.p, b.n);
                } else {
                    std::lock_guard<std::mutex> held(lock);
                    mailbox.push_back(b);
                }
                if (random.below(3) || !take(&b)) continue;
                wrong += b.p[0] != b.tag || b.p[b.n - 1] != b.tag;
                scopes.free(random.below(2) ? scope : nullptr, b.p, b.n);
            }
            scopes.end(scope);
        }
        hak_ctx_thread_done(scopes.program);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; i++)
        threads.emplace_back(work, i);
    for (std::thread &thread : threads)
        thread.join();
    CHECK(wrong == 0);
    for (const Block &b : mailbox)
        scopes.free(nullptr, b.p, b.n);
    CHECK(scopes.count == 0);
    hak_stats stats;
    stats.size = sizeof stats;
    hak_ctx_stats(scopes.program, &stats);
    CHECK(stats.live_blocks == 0);
}
