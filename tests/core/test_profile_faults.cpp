// Faults while a profile runs: pages that are refused, forks, clocks that stand still or jump, short stacks.
#include "crew.h"
#include "profiled.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace test;

namespace
{

struct Kind {
    const char *name;
    bool shared;
    hak_profile_mode mode;
};

const Kind KINDS[] = {
    {"local, exact", false, HAK_PROFILE_EXACT},
    {"local, sampled", false, HAK_PROFILE_SAMPLED},
    {"shared, exact", true, HAK_PROFILE_EXACT},
    {"shared, sampled", true, HAK_PROFILE_SAMPLED},
};

Options options_of(const Kind &kind)
{
    Options options = ctx_options();
    options.shared = kind.shared;
    return options;
}

hak_profile_options profile_of(const Kind &kind)
{
    hak_profile_options options = exact_options(1 * MiB);
    options.mode = kind.mode;
    options.mean = kind.mode == HAK_PROFILE_SAMPLED ? 1 * KiB : 0;
    return options;
}

hak_site site_of(size_t i)
{
    return 1 + i % 300;
}

// What a context and a running profile say of each other, with no thread at work.
struct Said {
    double live_bytes = 0, alloc_blocks = 0;
    uint64_t live_samples = 0, samples = 0;
};

Said said_by(hak_ctx *ctx)
{
    Said said;
    for (const auto &[key, s] : stacks_of(ctx)) {
        said.live_bytes += s.live_bytes;
        said.alloc_blocks += s.alloc_blocks;
        said.live_samples += s.live_samples;
        said.samples += s.samples;
        if (s.live_samples > s.samples || s.live_bytes > s.alloc_bytes + 0.5)
            FAIL("more lives than was made");
    }
    return said;
}

struct Work {
    hak_ctx *ctx;
    std::vector<std::pair<unsigned char *, size_t>> blocks;
    size_t made = 0, refused = 0;

    void allocate(size_t count, uint64_t seed)
    {
        Random random(seed);
        for (size_t i = 0; i < count; i++) {
            size_t n = 16 + random.below(random.below(40) ? 3000 : 300 * KiB);
            auto *p = static_cast<unsigned char *>(hak_alloc_cs(ctx, n, 0, site_of(i)));
            refused += !p;
            if (!p) continue;
            made++;
            p[0] = p[n - 1] = (unsigned char)n;
            blocks.push_back({p, n});
            if (i % 3) continue;
            size_t at = random.below(blocks.size());
            release(at);
        }
    }
    void release(size_t at)
    {
        auto [p, n] = blocks[at];
        expect(p[0] == (unsigned char)n && p[n - 1] == (unsigned char)n, "a block lost its contents");
        hak_free(ctx, p);
        blocks[at] = blocks.back();
        blocks.pop_back();
    }
    void release_all()
    {
        while (!blocks.empty())
            release(blocks.size() - 1);
    }
};

// With the n-th request for pages refused since the profile was to start. Returns whether one was.
bool refuse_nth(const Kind &kind, uint64_t n)
{
    CAPTURE(kind.name, n);
    TestSpace s;
    Options options = options_of(kind);
    TestCtx ctx(s.space, &options);
    hak_profile_options profile = profile_of(kind);
    s.os.fail_nth(n);
    int rc = hak_profile_start(ctx, &profile);
    REQUIRE((rc == 0 || rc == -2));
    if (rc == -2) {
        REQUIRE(s.os.failed == 1);
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
    }
    Work work{ctx, {}};
    std::string trouble;
    if (kind.shared) {
        Crew other(1, [&](size_t) { work.allocate(400, 1); });
        trouble = other.join();
    } else {
        work.allocate(400, 1);
    }
    REQUIRE(trouble == "");
    int mark = hak_profile_mark(ctx, "half");
    REQUIRE((mark == 1 || mark == -2));
    work.allocate(400, 2);
    bool failed = s.os.failed > 0;
    s.os.fail_nth(0);

    hak_profile_info info = info_of(ctx);
    Said said = said_by(ctx);
    REQUIRE(said.samples == info.samples);
    size_t dropped = info.dropped_samples + info.dropped_stacks;
    if (kind.mode == HAK_PROFILE_EXACT) {
        REQUIRE(info.samples + dropped == work.made);
        if (!dropped) REQUIRE(said.live_bytes == (double)stats_of(ctx).live_bytes);
        REQUIRE(said.live_bytes <= (double)stats_of(ctx).live_bytes);
    }
    if (!failed) REQUIRE(work.refused + dropped == 0);
    require_sound(ctx);

    work.release_all();
    hak_ctx_flush(ctx);
    REQUIRE(said_by(ctx).live_samples == 0);
    REQUIRE(said_by(ctx).live_bytes == 0);
    REQUIRE(stats_of(ctx).live_blocks == 0);
    // What was refused once is asked for again.
    work.allocate(200, 3);
    REQUIRE(info_of(ctx).samples > info.samples);
    REQUIRE(hak_profile_stop(ctx) == 0);
    work.release_all();
    REQUIRE(hak_profile_reset(ctx) == 0);
    hak_ctx_flush(ctx);
    require_sound(ctx);
    return failed;
}

} // namespace

TEST_CASE("profile faults: the n-th page is refused while one runs")
{
    for (const Kind &kind : KINDS) {
        // Every one; under sanitizers and in debug every fourth.
        uint64_t n = 1;
        while (refuse_nth(kind, n))
            REQUIRE((n += EFFORT > 1 ? 1 : 4) < 2000);
        REQUIRE(n > 5);
    }
}

TEST_CASE("profile faults: pages are refused now and then, beside threads at work")
{
    for (const Kind &kind : KINDS) {
        if (!kind.shared) continue;
        CAPTURE(kind.name);
        TestSpace s;
        Options options = options_of(kind);
        TestCtx ctx(s.space, &options);
        hak_profile_options profile = profile_of(kind);
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
        s.os.fail_each(5);
        std::vector<Work> work(3, Work{ctx, {}});
        Crew crew(3, [&](size_t i) {
            for (size_t round = 0; round < 4; round++) {
                work[i].allocate(300, 10 * round + i);
                if (round % 2) work[i].release_all();
            }
        });
        REQUIRE(crew.join() == "");
        REQUIRE(s.os.failed > 0);
        s.os.fail_each(0);
        hak_profile_info info = info_of(ctx);
        size_t made = 0;
        for (const Work &w : work)
            made += w.made;
        REQUIRE(said_by(ctx).samples == info.samples);
        if (kind.mode == HAK_PROFILE_EXACT)
            REQUIRE(info.samples + info.dropped_samples + info.dropped_stacks == made);
        for (Work &w : work)
            w.release_all();
        hak_ctx_flush(ctx);
        REQUIRE(said_by(ctx).live_samples == 0);
        require_sound(ctx);
    }
}

TEST_CASE("profile faults: a clock that stands still, jumps ahead or goes back")
{
    const uint64_t hour = 3600ull * 1000 * 1000 * 1000;
    const uint64_t times[][4] = {{1, 1, 1, 1},
                                 {hour, hour * 9000, hour * 9001, UINT64_MAX},
                                 {hour, hour / 2, 2, 1},
                                 {UINT64_MAX, 1, hour, 1}};
    for (const Kind &kind : KINDS)
        for (const auto &time : times) {
            CAPTURE(kind.name, time[0], time[1]);
            TestSpace s;
            Options options = options_of(kind);
            TestCtx ctx(s.space, &options);
            hak_profile_options profile = profile_of(kind);
            s.os.now = time[0];
            REQUIRE(hak_profile_start(ctx, &profile) == 0);
            Work work{ctx, {}};
            for (size_t i = 1; i < 4; i++) {
                work.allocate(500, i);
                s.os.now = time[i];
                REQUIRE(hak_profile_mark(ctx, nullptr) == (int)i);
                if (i == 2) work.release_all();
                hak_ctx_trim(ctx);
            }
            double died = 0;
            for (const auto &[key, stack] : stacks_of(ctx)) {
                // Of a clock that went back nothing is older than the time there ever was.
                REQUIRE((stack.age_ns >= 0 && stack.age_ns <= 1.9e19));
                for (double blocks : stack.lifetime) {
                    REQUIRE(blocks >= 0);
                    died += blocks;
                }
            }
            Said said = said_by(ctx);
            if (kind.mode == HAK_PROFILE_EXACT)
                REQUIRE(died == said.alloc_blocks - (double)said.live_samples);
            work.release_all();
            hak_ctx_flush(ctx);
            REQUIRE(said_by(ctx).live_bytes == 0);
            require_sound(ctx);
        }
}

#ifndef __SANITIZE_THREAD__ // the sanitizer's own runtime does not survive it
TEST_CASE("profile faults: a fork while one runs, which both sides go on with")
{
    for (const Kind &kind : KINDS) {
        CAPTURE(kind.name);
        Options options = options_of(kind);
        hak_ctx *ctx = hak_ctx_new(nullptr, &options);
        REQUIRE(ctx != nullptr);
        hak_profile_options profile = profile_of(kind);
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
        std::atomic<bool> stop{false};
        Crew crew(kind.shared ? 2 : 0, [&](size_t t) {
            Work work{ctx, {}};
            for (uint64_t i = 0; !stop; i++) {
                work.allocate(50, i * 2 + t);
                work.release_all();
            }
        });
        Work work{ctx, {}};
        for (uint64_t i = 0; i < 10; i++) {
            work.allocate(100, i);
            hak_ctx_fork_prepare(ctx);
            pid_t pid = fork();
            if (pid == 0) {
                hak_ctx_fork_child(ctx);
                alarm(60); // a hang ends by a signal
                uint64_t before = info_of(ctx).samples;
                work.allocate(300, i);
                bool good = info_of(ctx).samples > before;
                work.release_all();
                good = good && said_by(ctx).samples == info_of(ctx).samples;
                good = good && hak_profile_stop(ctx) == 0 && hak_profile_reset(ctx) == 0;
                good = good && hak_profile_start(ctx, &profile) == 0;
                work.allocate(10, i);
                _exit(!good);
            }
            hak_ctx_fork_parent(ctx);
            int status = -1;
            REQUIRE(pid > 0);
            REQUIRE(waitpid(pid, &status, 0) == pid);
            REQUIRE(status == 0);
        }
        stop = true;
        REQUIRE(crew.join() == "");
        work.release_all();
        hak_ctx_flush(ctx);
        REQUIRE(said_by(ctx).live_samples == 0);
        require_sound(ctx);
        hak_ctx_destroy(ctx);
    }
}
#endif

#ifndef TEST_SLOW_BUILD // sanitizers make frames larger
#ifdef __aarch64__
constexpr size_t SMALLEST_STACK = 128 * KiB; // glibc gives no smaller one there
#else
constexpr size_t SMALLEST_STACK = 16 * KiB;
#endif

TEST_CASE("profile faults: a thread with the smallest stack")
{
    for (const Kind &kind : KINDS) {
        CAPTURE(kind.name);
        Options options = options_of(kind);
        options.debug = HAK_DEBUG_CHECK | HAK_DEBUG_POISON;
        hak_profile_options profile = profile_of(kind);
        profile.depth = HAK_PROFILE_DEPTH_MOST;
        profile.frames = [](void *, hak_ctx *, hak_site, uintptr_t *frames, size_t room) {
            for (size_t i = 0; i < room; i++)
                frames[i] = i;
            return room;
        };
        // The thread calls neither Catch nor the fake OS: both take more of a stack than is there.
        struct Task {
            hak_ctx *ctx;
            const hak_profile_options *profile;
            size_t seen;
            bool good;
        } task{hak_ctx_new(nullptr, &options), &profile, 0, false};
        REQUIRE(task.ctx != nullptr);
        pthread_attr_t attr;
        REQUIRE(pthread_attr_init(&attr) == 0);
        REQUIRE(pthread_attr_setstacksize(&attr, SMALLEST_STACK) == 0);
        pthread_t thread;
        REQUIRE(pthread_create(
                    &thread, &attr,
                    [](void *argument) -> void * {
                        Task &t = *static_cast<Task *>(argument);
                        t.good = hak_profile_start(t.ctx, t.profile) == 0;
                        void *blocks[100] = {};
                        for (size_t i = 0; i < 4000; i++) {
                            void *&p = blocks[i % 100];
                            if (i % 5) {
                                hak_free(t.ctx, p);
                                p = hak_alloc_cs(t.ctx, (i * 37) % (i % 50 ? 5000 : 2 * MiB), 0, 1 + i % 9);
                            } else {
                                p = hak_realloc(t.ctx, p, (i * 91) % 100000);
                            }
                            t.good = t.good && p;
                            if (i % 1000 == 999) {
                                t.good = t.good && hak_profile_mark(t.ctx, "window") > 0;
                                hak_ctx_trim(t.ctx);
                                t.good = t.good && hak_ctx_check(t.ctx, nullptr, nullptr);
                            }
                        }
                        hak_profile_visit(
                            t.ctx,
                            [](void *user, const hak_profile_stack *) {
                                return ++*static_cast<size_t *>(user) > 0;
                            },
                            &t.seen);
                        for (void *p : blocks)
                            hak_free(t.ctx, p);
                        return nullptr;
                    },
                    &task) == 0);
        REQUIRE(pthread_join(thread, nullptr) == 0);
        pthread_attr_destroy(&attr);
        CHECK(task.good);
        CHECK(task.seen > 0);
        require_sound(task.ctx);
        hak_ctx_destroy(task.ctx);
    }
}
#endif
