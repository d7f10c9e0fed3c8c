// Short histories of two threads on a shared context, under every schedule with up to two preemptions: the
// core is built so that each ordered atomic operation and each lock is a place where the other thread may go
// on (support/step.h), and one thread runs at a time. Orders weaker than sequential consistency are not
// explored; ThreadSanitizer looks at those.
#include "crew.h"
#include "heap.h"

#include <hakmem/policy.h>
#include <hakmem/profile.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

using namespace test;

// The registers of threads, as far from each other as stacks of glibc are.
static constexpr uintptr_t FIRST_THREAD = 0x7f1234567000, THREAD_APART = 8 * MiB + 4 * KiB;
extern "C" uintptr_t hk_test_thread;
uintptr_t hk_test_thread = FIRST_THREAD + 2 * THREAD_APART;

namespace
{

// Two threads of which one runs. A schedule is who begins and at which steps the turn goes over. One thread of
// the system plays both, each on a stack of its own, and says to the core which one calls (support/turns.h): a
// turn between threads of the system costs two calls of the kernel, and a hundred times as much.
class Scheduler
{
  public:
    Scheduler()
    {
        for (int t = 0; t < 2; t++) {
            getcontext(&contexts_[t]);
            contexts_[t].uc_stack.ss_sp = stacks_[t].data();
            contexts_[t].uc_stack.ss_size = stacks_[t].size();
            makecontext(&contexts_[t], (void (*)())live, 2, (unsigned)addr(this),
                        (unsigned)((uint64_t)addr(this) >> 32));
        }
    }

    // Runs fn(0) and fn(1) as the schedule says; "" or what went wrong.
    std::string run(const std::function<void(int)> &fn, int first, uint64_t a, uint64_t b)
    {
        work_ = &fn;
        error_ = "";
        steps = 0;
        preempt_[0] = a;
        preempt_[1] = b;
        done_[0] = done_[1] = false;
        go(first);
        return error_;
    }

    // One after the other, in their own threads.
    void alone(const std::function<void(int)> &fn)
    {
        for (int t = 0; t < 2; t++)
            run(
                [&](int me) {
                    if (me == t) fn(me);
                },
                t, 0, 0);
    }

    void step()
    {
        if (me_ == MAIN) return;
        steps++;
        if (steps == preempt_[0] || steps == preempt_[1]) pass();
    }

    void blocked()
    {
        if (me_ == MAIN) return;
        if (++waits_[me_] > 100000) {
            std::fputs("test_interleavings: deadlock\n", stderr);
            std::abort();
        }
        pass();
    }

    uint64_t steps = 0;
    bool reads = false;  // of the map are steps, too
    bool fences = false; // so are these

  private:
    static constexpr int MAIN = 2;

    // Returns when the turn comes back to the one who calls.
    void go(int to)
    {
        const int from = me_;
        me_ = to;
        hk_test_thread = FIRST_THREAD + (uintptr_t)to * THREAD_APART;
        swapcontext(&contexts_[from], &contexts_[to]);
    }

    void pass()
    {
        if (!done_[1 - me_]) go(1 - me_);
    }

    static void live(unsigned low, unsigned high)
    {
        Scheduler *self = (Scheduler *)((uint64_t)high << 32 | low);
        for (;;) {
            const int me = self->me_;
            self->waits_[me] = 0;
            try {
                (*self->work_)(me);
            } catch (const std::exception &e) {
                if (self->error_.empty()) self->error_ = e.what();
            }
            self->done_[me] = true;
            self->go(self->done_[1 - me] ? MAIN : 1 - me);
        }
    }

    ucontext_t contexts_[3];
    std::vector<char> stacks_[2] = {std::vector<char>(256 * KiB), std::vector<char>(256 * KiB)};
    const std::function<void(int)> *work_ = nullptr;
    std::string error_;
    uint64_t preempt_[2] = {0, 0}, waits_[2] = {0, 0};
    int me_ = MAIN;
    bool done_[2] = {false, false};
};

Scheduler *scheduler;

} // namespace

extern "C" void hk_test_step()
{
    if (scheduler) scheduler->step();
}

// Looks at the map are many.
extern "C" void hk_test_read()
{
    if (scheduler && scheduler->reads) scheduler->step();
}

// One processor sees its own stores in order.
extern "C" void hk_test_fence()
{
    if (scheduler && scheduler->fences) scheduler->step();
}

extern "C" void hk_test_blocked()
{
    if (scheduler) scheduler->blocked();
}

namespace
{

// Blocks of a unit and more go home one at a time; smaller ones by batches, which are full with 64 KiB.
// Of 2 KiB, a batch of one class has 16; the first 31 go by a mixed one.
constexpr size_t N = 80 * KiB, SMALL = 32 * KiB, CLASS = 2 * KiB, BLOCKS = 6, BATCH = 16, BEFORE = 31 + 14;
// Packed by the heap of a thread.
constexpr size_t PACKED = 700;
// How far apart two preemptions may be; any distance in a release build.
constexpr uint64_t WINDOW = EFFORT > 1 ? UINT64_MAX / 2 : 12;
// Three histories have nine tenths of all pairs. In a history of more than SHORT steps, one in SEVENTH of the pairs
// farther apart than NEAR is tried, unless all are asked for. An odd number: with 8, some distances would never occur.
constexpr uint64_t SHORT = 128, NEAR = 16, SEVENTH = 7;
const char *const LABELS[] = {"x"};

struct State {
    hak_ctx *ctx;
    void *block[2][BLOCKS]; // made by each thread before the history
    std::vector<void *> made[2];

    void make(int me, size_t n)
    {
        void *p = hak_alloc_cs(ctx, n, 1, 0);
        expect(p != nullptr, "no memory");
        fill(p, 64, (unsigned)(addr(p) >> 4));
        made[me].push_back(p);
    }

    void free_made(int me)
    {
        void *p = made[me].back();
        made[me].pop_back();
        hak_free(ctx, p);
    }
};

struct History {
    const char *name;
    std::function<void(State &, int)> act;
    size_t freed; // of the blocks made before
    size_t size = N;
    size_t before = 0; // so many more blocks are made by each and freed by the other before
    std::function<void(State &)> prepare = nullptr;
    bool reads = false; // of the map are steps, too
};

// Of the first thread's heap: what is left of its region is too small for a block that it packs in a history,
// and so many blocks behind its first one are free.
void free_behind_first(State &s, size_t blocks)
{
    scheduler->alone([&](int me) {
        if (me) return;
        const size_t unit = 16 * KiB;
        do
            s.make(0, PACKED - 100);
        while (unit - addr(s.made[0].back()) % unit >= 2 * (PACKED - 90));
        for (size_t i = 1; i <= blocks; i++) {
            hak_free(s.ctx, s.block[0][i]);
            s.block[0][i] = nullptr;
        }
    });
}

// It joins them and uses them again.
void join_and_use(State &s)
{
    hak_ctx_trim(s.ctx);
    s.make(0, 2 * PACKED);
}

// The first thread's heap has a magazine of packed blocks from now on.
void keep_packed(State &s)
{
    scheduler->alone([&](int me) {
        for (unsigned i = 0; !me && i < 70; i++) {
            const size_t n = PACKED - 64 * (i % 2); // of one class so many would have slabs
            hak_free(s.ctx, hak_alloc_cs(s.ctx, n, 1, 0));
        }
        for (unsigned i = 0; !me && i < 3; i++)
            s.make(0, PACKED);
    });
}

const History HISTORIES[] = {
    {"one frees what the other made and allocates again",
     [](State &s, int me) {
         if (me) hak_free(s.ctx, s.block[0][0]);
         else s.make(0, N);
     },
     1},
    {"batches leave while the other takes them home",
     [](State &s, int me) {
         for (size_t i = 0; i < BLOCKS; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
             else if (i % 2) hak_ctx_flush(s.ctx);
     },
     BLOCKS, SMALL},
    {"batches leave while the other allocates",
     [](State &s, int me) {
         for (size_t i = 0; i < 4; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
             else s.make(0, SMALL);
     },
     4, SMALL},
    {"batches leave both ways, and come back empty",
     [](State &s, int me) {
         for (size_t i = 0; i < 4; i++) {
             hak_free(s.ctx, s.block[1 - me][i]);
             if (i == 1) hak_ctx_flush(s.ctx);
         }
     },
     8, SMALL},
    {"batches leave for a thread that says goodbye",
     [](State &s, int me) {
         for (size_t i = 0; i < 4; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
             else if (i == 0) hak_ctx_thread_done(s.ctx);
     },
     4, SMALL},
    {"a batch of one class leaves while the other allocates",
     [](State &s, int me) {
         for (size_t i = 0; i < 3; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
             else s.make(0, CLASS);
     },
     3, CLASS, BEFORE},
    {"a batch of one class leaves while the other empties its transfer cache",
     [](State &s, int me) {
         for (size_t i = 0; i < 3; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
             else if (i == 1) s.make(0, CLASS);
             else hak_ctx_flush(s.ctx);
     },
     3, CLASS, BEFORE},
    {"batches of one class leave both ways, and come back empty",
     [](State &s, int me) {
         for (size_t i = 0; i < 4; i++) {
             if (i < 2) hak_free(s.ctx, s.block[1 - me][i]);
             else s.make(me, CLASS);
         }
     },
     4, CLASS, BEFORE},
    {"a batch of one class begins, and leaves half full",
     [](State &s, int me) {
         for (size_t i = 0; i < 3; i++)
             if (me) hak_free(s.ctx, s.block[0][i]);
         if (me) hak_ctx_flush(s.ctx);
         else s.make(0, CLASS);
     },
     3, CLASS, BEFORE - 14},
    {"other numbers while the other allocates",
     [](State &s, int me) {
         if (me) hak_ctx_policy_set(s.ctx, hak_policy_of_mode(HAK_MODE_FAST));
         else s.make(0, CLASS);
     },
     0, CLASS},
    {"a heap is made for a thread that comes while the other allocates",
     [](State &s, int me) { s.make(me, CLASS); }, 0, CLASS, 0,
     [](State &s) {
         scheduler->alone([&](int me) {
             if (me) hak_ctx_thread_done(s.ctx);
         });
         hak_free(s.ctx,
                  hak_alloc(s.ctx, CLASS)); // the thread that waits for both gets the one that was left
     }},
    {"a sampled run grows while the profile begins anew",
     [](State &s, int me) {
         if (me) {
             hak_profile_reset(s.ctx);
         } else {
             void *p = hak_realloc(s.ctx, s.made[0].back(), N + 40 * KiB);
             expect(p != nullptr, "realloc");
             s.made[0].back() = p;
         }
     },
     0, N, 0,
     [](State &s) {
         hak_profile_options exact = HAK_PROFILE_OPTIONS_INIT;
         exact.mode = HAK_PROFILE_EXACT;
         expect(hak_profile_start(s.ctx, &exact) == 0, "profile");
         scheduler->alone([&](int me) {
             if (!me) s.make(0, N);
         });
     },
     true},
    {"sums of labels beside a batch of one class",
     [](State &s, int me) {
         if (me) {
             for (size_t i = 0; i < 3; i++)
                 hak_free(s.ctx, s.block[0][i]);
         } else {
             s.make(0, CLASS);
             hak_label_info infos[2];
             hak_labels_stats(s.ctx, infos, 2);
             /* A whole batch may be under way. */
             expect(infos[1].live_blocks <= 2 * BLOCKS + 1 + BATCH, "a label beside a batch");
         }
     },
     3, CLASS, BEFORE},
    {"a block is freed while its slab goes over to a heap that has a remote cache",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.made[1].back());
             s.made[1].pop_back();
         } else {
             for (size_t i = 0; i < 8; i++)
                 s.make(0, CLASS);
         }
     },
     0, CLASS, BEFORE,
     [](State &s) {
         s.make(1, CLASS); // by a third thread, which says goodbye
         hak_ctx_thread_done(s.ctx);
     },
     true},
    {"the size of a block while the bytes behind it become the region that packed blocks are cut from",
     [](State &s, int me) {
         if (me == 0) s.make(0, PACKED - 100);
         else expect(hak_usable_size(s.ctx, s.block[0][0]) < PACKED + 100, "the size of the other's block");
     },
     1, PACKED, 0, [](State &s) { free_behind_first(s, 1); }, true},
    {"a packed block is asked about and freed while those behind it are joined and used again",
     [](State &s, int me) {
         if (me == 0) {
             join_and_use(s);
         } else {
             void *p = s.block[0][0];
             expect(hak_usable_size(s.ctx, p) < PACKED + 100, "the size of the other's block");
             expect(hak_label_of(s.ctx, p) == 1 && hak_owns(s.ctx, p), "the other's block");
             hak_free(s.ctx, p);
         }
     },
     4, PACKED, 0, [](State &s) { free_behind_first(s, 3); }, true},
    {"realloc of the other's packed block while those behind it are joined and used again",
     [](State &s, int me) {
         if (me == 0) {
             join_and_use(s);
         } else {
             unsigned char *p = (unsigned char *)hak_realloc(s.ctx, s.block[0][0], PACKED * 3 / 2);
             expect(p != nullptr && hak_usable_size(s.ctx, p) < 2 * PACKED, "realloc");
             memset(p, 0xA5, PACKED * 3 / 2);
             s.block[0][0] = p;
         }
     },
     2, PACKED, 0, [](State &s) { free_behind_first(s, 2); }, true},
    {"packed blocks come and go at hand while the other trims",
     [](State &s, int me) {
         if (me) {
             hak_ctx_trim(s.ctx);
         } else {
             s.free_made(0);
             s.make(0, PACKED);
             s.free_made(0);
             s.free_made(0);
         }
     },
     0, PACKED, 0, keep_packed, true},
    {"packed blocks come home while their thread has others at hand",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.block[0][0]);
             hak_ctx_flush(s.ctx);
         } else {
             s.free_made(0);
             s.make(0, PACKED);
             s.make(0, PACKED);
         }
     },
     1, PACKED, 0, keep_packed, true},
    {"both free what the other made",
     [](State &s, int me) {
         hak_free(s.ctx, s.block[1 - me][0]);
         hak_free(s.ctx, s.block[1 - me][1]);
     },
     4},
    {"a thread says goodbye while its blocks come home",
     [](State &s, int me) {
         if (me) hak_free(s.ctx, s.block[0][0]);
         else hak_ctx_thread_done(s.ctx);
     },
     1},
    {"a thread comes back while its blocks come home",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.block[0][0]);
         } else {
             hak_ctx_thread_done(s.ctx);
             s.make(0, N);
         }
     },
     1},
    {"flush beside a free",
     [](State &s, int me) {
         if (me) hak_free(s.ctx, s.block[0][0]);
         else hak_ctx_flush(s.ctx);
     },
     1},
    {"trim beside a free and an allocation",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.block[0][0]);
             s.make(1, 100);
         } else {
             hak_ctx_trim(s.ctx);
         }
     },
     1},
    {"statistics beside a free",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.block[0][0]);
         } else {
             hak_stats stats{};
             stats.size = sizeof stats;
             hak_ctx_stats(s.ctx, &stats);
             expect(stats.live_bytes >= (2 * BLOCKS - 1) * N && stats.live_bytes <= 2 * BLOCKS * N,
                    "live bytes beside one free");
         }
     },
     1},
    {"sums of labels beside a free",
     [](State &s, int me) {
         if (me) {
             hak_free(s.ctx, s.block[0][0]);
         } else {
             hak_label_info infos[2];
             hak_labels_stats(s.ctx, infos, 2);
             expect(infos[1].live_blocks + 1 >= 2 * BLOCKS && infos[1].live_blocks <= 2 * BLOCKS,
                    "a label beside one free");
         }
     },
     1},
    {"realloc of the other's block",
     [](State &s, int me) {
         void *&p = s.block[1 - me][0];
         p = hak_realloc(s.ctx, p, 2 * N);
         expect(p != nullptr, "realloc");
     },
     0},
};

std::string verify(State &s, size_t freed)
{
    size_t live = 2 * BLOCKS - freed + s.made[0].size() + s.made[1].size();
    for (auto &list : s.made)
        for (void *p : list)
            if (!filled(p, 64, (unsigned)(addr(p) >> 4))) return "a new block lost its contents";
    hak_ctx_flush(s.ctx);
    hak_stats stats = stats_of(s.ctx);
    if (stats.live_blocks != live)
        return std::to_string(stats.live_blocks) + " blocks live, not " + std::to_string(live);
    Totals labels = label_totals(s.ctx), visited = visit_totals(s.ctx);
    if (labels.bytes != stats.live_bytes || labels.blocks != live) return "the labels' sum is another";
    if (visited.bytes != stats.live_bytes || visited.blocks != live) return "the visit sees others";
    Errors errors;
    if (!hak_ctx_check(s.ctx, Errors::record, &errors)) return "check: " + errors.list[0].what;
    return "";
}

// A context with the blocks that a history begins with.
State begin(hak_space *space, const History &history, Errors *errors)
{
    Options options = ctx_options(errors);
    options.shared = true;
    options.labels = LABELS;
    options.label_count = 1;
    if (history.before) options.packed_bytes = HAK_NONE;
    State s{};
    s.ctx = hak_ctx_new(space, &options);
    REQUIRE(s.ctx != nullptr);
    scheduler->alone([&](int me) {
        for (void *&p : s.block[me])
            p = hak_alloc_cs(s.ctx, history.size, 1, 0);
    });
    std::vector<void *> before[2];
    scheduler->alone([&](int me) {
        for (size_t i = 0; i < history.before; i++)
            before[me].push_back(hak_alloc_cs(s.ctx, history.size, 1, 0));
    });
    scheduler->alone([&](int me) {
        for (void *p : before[1 - me])
            hak_free(s.ctx, p);
    });
    if (history.prepare) history.prepare(s);
    return s;
}

// One schedule. Returns its number of steps.
uint64_t explore(hak_space *space, const History &history, int first, uint64_t a, uint64_t b)
{
    Errors errors;
    State s = begin(space, history, &errors);
    scheduler->reads = history.reads;
    std::string error = scheduler->run([&](int me) { history.act(s, me); }, first, a, b);
    scheduler->reads = false;
    const uint64_t steps = scheduler->steps;
    if (error.empty()) error = verify(s, history.freed);
    if (error.empty()) error = errors.take();
    if (error != "")
        FAIL(history.name << ": thread " << first << " first, turns at " << a << " and " << b << ": "
                          << error);
    hak_ctx_destroy(s.ctx);
    return steps;
}

// The child of a fork in the middle of what thread `actor` does: the heap is whole, and sums lack no more
// than what the actor had in hand, a block or a batch. 0 = good, else the line that is not.
int live_in_child(State &s, int actor, Errors &errors)
{
    scheduler = nullptr; // the other thread is gone
    alarm(60);           // a hang ends by a signal
    hak_ctx_fork_child(s.ctx);
    for (void *p : s.block[actor])
        hak_free(s.ctx, p);
    // Whoever comes gets the heap of the actor, with what it has to send.
    std::vector<void *> sent;
    for (size_t i = 0; i < 2 * BATCH; i++)
        sent.push_back(hak_alloc_cs(s.ctx, CLASS, 1, 0));
    const uintptr_t here = hk_test_thread;
    hk_test_thread = FIRST_THREAD + 3 * THREAD_APART;
    for (void *p : sent)
        hak_free(s.ctx, p);
    hak_ctx_thread_done(s.ctx);
    hk_test_thread = here;
    void *blocks[] = {hak_alloc_cs(s.ctx, N, 1, 0), hak_alloc_cs(s.ctx, SMALL, 1, 0),
                      hak_alloc_cs(s.ctx, CLASS, 1, 0), hak_alloc_cs(s.ctx, 2 * MiB, 1, 0),
                      hak_alloc_cs(s.ctx, 24, 0, 0)};
    for (void *&p : blocks) {
        if (!p) return __LINE__;
        fill(p, 20, (unsigned)(addr(p) >> 4));
    }
    hak_ctx_trim(s.ctx);
    if (!hak_ctx_check(s.ctx, nullptr, nullptr)) return __LINE__;
    Totals labels = label_totals(s.ctx), visited = visit_totals(s.ctx);
    hak_stats stats = stats_of(s.ctx);
    if (labels.blocks != visited.blocks || labels.bytes != visited.bytes) return __LINE__;
    if (labels.blocks - stats.live_blocks > BATCH || labels.bytes - stats.live_bytes > N) return __LINE__;
    for (void *p : blocks) {
        if (!filled(p, 20, (unsigned)(addr(p) >> 4))) return __LINE__;
        hak_free(s.ctx, p);
    }
    hak_ctx_flush(s.ctx);
    if (hak_ctx_policy_set(s.ctx, nullptr) != 0) return __LINE__;
    if (!errors.list.empty()) return __LINE__;
    hak_ctx_destroy(s.ctx);
    return 0;
}

// One thread acts, the other forks when the turn goes over. Returns the number of steps.
uint64_t explore_fork(hak_space *space, const History &history, int actor, uint64_t a, uint64_t b)
{
    Errors errors;
    State s = begin(space, history, &errors);
    int status = 0;
    scheduler->fences = true;
    std::string error = scheduler->run(
        [&](int me) {
            if (me == actor) {
                history.act(s, me);
                return;
            }
            hak_ctx_fork_prepare(s.ctx);
            pid_t pid = fork();
            if (pid == 0) _exit(live_in_child(s, actor, errors));
            hak_ctx_fork_parent(s.ctx);
            expect(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
        },
        actor, a, b);
    scheduler->fences = false;
    const uint64_t steps = scheduler->steps;
    if (error.empty()) error = errors.take();
    if (error.empty() && !hak_ctx_check(s.ctx, nullptr, nullptr)) error = "hak_ctx_check in the parent";
    if (error != "" || status != 0)
        FAIL(history.name << ": thread " << actor << " acts, turns at " << a << " and " << b << ": status "
                          << status << (WIFEXITED(status) ? ", line " : ", signal, ") << WEXITSTATUS(status)
                          << " " << error);
    hak_ctx_destroy(s.ctx);
    return steps;
}

void explore_all(bool every)
{
    hak_space *space = hak_space_new(nullptr);
    REQUIRE(space != nullptr);
    Scheduler only;
    scheduler = &only;
    for (const History &history : HISTORIES) {
        uint64_t schedules = 0;
        for (int first = 0; first < 2; first++)
            for (uint64_t a = 1, steps = UINT64_MAX; a <= steps; a++) {
                steps = explore(space, history, first, a, 0);
                schedules++;
                for (uint64_t b = a + 1, all = steps; b <= all && b <= a + WINDOW; b++) {
                    if (!every && steps > SHORT && b - a > NEAR && (a + b) % SEVENTH) continue;
                    all = explore(space, history, first, a, b);
                    schedules++;
                }
            }
        INFO(history.name);
        CHECK(schedules > 20);
        std::printf("%s: %llu schedules\n", history.name, (unsigned long long)schedules);
    }
    scheduler = nullptr;
    hak_space_delete(space);
}

} // namespace

TEST_CASE("interleavings of two threads, up to two preemptions")
{
    explore_all(false);
}

TEST_CASE("interleavings: every one of two threads with up to two preemptions")
{
    if (WINDOW > NEAR) explore_all(true); // else the case above has them all
}

TEST_CASE("interleavings: a fork at every step of the other thread")
{
    hak_space *space = hak_space_new(nullptr);
    REQUIRE(space != nullptr);
    Scheduler only;
    scheduler = &only;
    uint64_t schedules = 0;
    for (const History &history : HISTORIES)
        for (int actor = 0; actor < 2; actor++)
            for (uint64_t a = 1, steps = UINT64_MAX; a <= steps; a++) {
                steps = explore_fork(space, history, actor, a, 0);
                // And the actor goes on between the locks that a fork takes.
                explore_fork(space, history, actor, a, a + 1 + a % 3);
                schedules += 2;
            }
    CHECK(schedules > 500);
    std::printf("fork: %llu schedules\n", (unsigned long long)schedules);
    scheduler = nullptr;
    hak_space_delete(space);
}
