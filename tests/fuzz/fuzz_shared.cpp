// Fuzz target: a shared context used by up to 100 threads in turn, as the input says whose turn it is, with
// requests of pages that fail. What each call did is compared with a model: contents, labels, sums. The
// threads are played by one: the core that is linked here asks the test which of them it is
// (support/turns.h).
#include "input.h"

#include "fake_os.h"
#include "stamp.h"

#include <hakmem/guard.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

extern "C" {
uintptr_t hk_test_thread = 1;
// Nobody else is at work: a lock that is taken was not dropped. Linked in place of the core's hk_lock_wait.
void __wrap_hk_lock_wait(void *lock);
// An invariant of the core does not hold. Linked in place of the core's hk_assert_failed.
void __wrap_hk_assert_failed(const char *what);
void __asan_on_error();
void __ubsan_on_report();
}

using namespace test;

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_shared: %s\n", what);
    tell_operations();
    std::abort();
}

// Which threads live, beside the pages.
struct ThreadsOs : FakeOs {
    uint64_t current = 1;
    std::set<uint64_t> living;
    hak_os with_threads{};

    ThreadsOs() : FakeOs(true)
    {
    }
    const hak_os *threads_table()
    {
        with_threads = *table();
        with_threads.thread_id = [](void *u) { return of(u)->current; };
        with_threads.thread_alive = [](void *u, uint64_t id) { return of(u)->living.count(id) != 0; };
        return &with_threads;
    }

  private:
    static ThreadsOs *of(void *user)
    {
        return static_cast<ThreadsOs *>(static_cast<FakeOs *>(user));
    }
};

struct Thread {
    uintptr_t stack; // its register
    uint64_t id;
};

struct Block {
    char *p;
    size_t n, usable;
    uint32_t id;
    hak_label label;
};

const char *const LABELS[] = {"red", "green", "blue"};
constexpr size_t HANDS[] = {1, 2, 4, 4, 4, 8, 24, 100};
constexpr size_t LIVE_BOUND = 24 * MiB;

struct Run {
    Input input;
    ThreadsOs os;
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr;
    std::vector<Thread> threads;
    uint64_t next_thread = 1;
    std::vector<Block> blocks;
    std::string error;
    uint32_t next = 1;
    size_t live = 0, hard = 0, ceiling = SIZE_MAX, labels = 0, churn = 64;
    size_t target = 300; // blocks that there are to be
    size_t stay = 1;     // operations that a thread does in a row, about
    bool roles = false;  // half of the threads allocate, the others free
    size_t thread = 0;
    size_t few = 0, sizes[4]; // sizes that most blocks have, if few
    uint64_t steps = 0, failed_before = 0;
    size_t unchecked = 0; // operations since the sums were compared, rare ones more than once

    Run(const uint8_t *data, size_t size) : input(data, size)
    {
        make();
        while (input.left())
            step();
        finish();
    }

    void make()
    {
        hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
        hak_tuning kept = HAK_TUNING_INIT;
        pages.os = input.below(2) ? os.threads_table() : os.table();
        pages.reserve = 4 * MiB << input.below(4);
        pages.tuning = &kept;
        if (input.below(3) == 0) kept.retained_bytes = kept.retained_percent = HAK_NONE;
        threads.resize(HANDS[input.below(std::size(HANDS))]);
        for (Thread &t : threads)
            start(t, true);
        turn(0);
        space = hak_space_new(&pages);
        hak_options options = HAK_OPTIONS_INIT;
        hak_tuning tuning = HAK_TUNING_INIT;
        options.on_error = [](void *user, hak_error what, const void *, const char *text) {
            static_cast<Run *>(user)->error = std::string(hak_error_name(what)) + " " + (text ? text : "");
        };
        options.error_user = this;
        options.tuning = &tuning;
        options.shared = true;
        options.mode = (hak_mode)input.below(4);
        options.workload = (hak_workload)input.below(3);
        options.max_align = input.below(4) == 0;
        options.labels = LABELS;
        options.label_count = labels = input.below(4);
        size_t debug = input.below(8);
        options.debug = debug == 0   ? HAK_DEBUG_CHECK
                        : debug == 1 ? HAK_DEBUG_POISON
                        : debug < 4  ? HAK_DEBUG_GUARD
                                     : 0;
        tuning.guard_every = 1 + input.below(30);
        churn = (size_t)64 << 3 * input.below(4);
        stay = input.below(3) ? 1 : 16;
        roles = input.below(3) == 0;
        few = input.below(3) ? 1 + input.below(std::size(sizes)) : 0;
        for (size_t &n : sizes)
            n = input.below(input.below(4) ? 200 : 3000);
        ctx = space ? hak_ctx_new(space, &options) : nullptr;
        if (!ctx) wrong("no context");
    }

    void start(Thread &t, bool elsewhere)
    {
        // As glibc's stacks lie.
        if (elsewhere) t.stack = ((uintptr_t)0x7f0000 << 24) + next_thread * (8 * MiB + PAGE);
        t.id = next_thread++;
        os.living.insert(t.id);
    }

    void end(Thread &t, bool elsewhere)
    {
        os.living.erase(t.id);
        start(t, elsewhere);
    }

    void turn(size_t which)
    {
        thread = which;
        hk_test_thread = threads[which].stack;
        os.current = threads[which].id;
    }

    void finish()
    {
        os.fail_nth(0);
        hak_limit(ctx, 0, 0, nullptr, nullptr);
        verify();
        size_t how = input.below(4);
        if (how == 0) hak_ctx_retire(ctx);
        if (how < 2) {
            for (Block &b : blocks)
                free(b);
            blocks.clear();
            live = 0;
            if (how) verify();
        }
        if (how) hak_ctx_destroy(ctx);
        if (!error.empty()) wrong(error.c_str());
        hak_space_delete(space);
        std::string report = os.close();
        if (!report.empty()) wrong(report.c_str());
    }

    size_t some_size()
    {
        size_t which = few ? input.below(8) : 7;
        if (which < 7) return sizes[which % few];
        switch (input.below(8)) {
        case 0:
            return input.below(32 * KiB);
        case 1:
            return input.below(16) ? input.below(2000) : input.below(400 * KiB);
        case 2:
            return input.below(64) ? input.below(100) : MiB + input.below(2 * MiB);
        default:
            return input.below(600);
        }
    }

    // The calling thread's own heap, at times, instead of the context.
    hak_ctx *by()
    {
        hak_ctx *own = input.below(8) ? nullptr : hak_ctx_thread(ctx);
        return own ? own : ctx;
    }

    void check_null() const
    {
        if (os.failed == failed_before && hard == 0) wrong("NULL without a reason");
    }

    // What a call returned for `b`, whose p is the block or NULL.
    void made(Block b, size_t align, bool cleared)
    {
        operations.count++;
        if (!b.p) {
            check_null();
            return;
        }
        b.usable = hak_usable_size(ctx, b.p);
        if (b.usable < b.n || b.usable == 0 || reinterpret_cast<uintptr_t>(b.p) % align)
            wrong("size or alignment");
        if (!os.usable(b.p, b.usable)) wrong("pages of a new block that nobody committed");
        if (hak_label_of(ctx, b.p) != b.label) wrong("label of a new block");
        if (cleared && !zero(b.p, b.n)) wrong("not zero");
        stamp(b.p, b.n, b.id);
        live += b.usable;
        blocks.push_back(b);
    }

    Block take(size_t at)
    {
        Block b = blocks[at];
        if (!stamped(b.p, b.n, b.n, b.id)) wrong("contents");
        if (hak_usable_size(ctx, b.p) != b.usable || hak_label_of(ctx, b.p) != b.label)
            wrong("block changed");
        blocks[at] = blocks.back();
        blocks.pop_back();
        live -= b.usable;
        return b;
    }

    void free(const Block &b)
    {
        operations.count++;
        hak_free(b.id % 8 ? ctx : by(), b.p);
    }

    void change(size_t at)
    {
        Block b = take(at), after = b;
        after.n = input.below(4) ? some_size() : b.n < 4 * MiB ? b.n + b.n / 2 : 100;
        after.id = next++;
        after.p = (char *)hak_realloc(by(), b.p, after.n);
        if (!after.p) {
            if (after.n <= b.n) wrong("a shrink failed");
            if (!stamped(b.p, b.n, b.n, b.id)) wrong("contents after a failed realloc");
            check_null();
            made(b, 1, false);
            return;
        }
        if (!stamped(after.p, std::min(b.n, after.n), b.n, b.id)) wrong("contents after realloc");
        made(after, 1, false);
    }

    void allocate()
    {
        hak_label label = (hak_label)input.below(labels + 1);
        size_t kind = input.below(8), n = some_size();
        if (kind == 0) {
            made({(char *)hak_calloc_cs(by(), 1, n, label, 7), n, 0, next++, label}, 8, true);
        } else if (kind == 1) {
            size_t align = (size_t)1 << input.below(input.below(16) ? 8 : 16);
            made({(char *)hak_aligned_alloc_cs(by(), align, n, label, 7), n, 0, next++, label}, align, false);
        } else {
            made({(char *)hak_alloc_cs(by(), n, label, 7), n, 0, next++, label}, 8, false);
        }
    }

    // Around so many blocks as are to be; at times many at once, for batches are what frees of other threads
    // go by.
    void operation()
    {
        size_t kind = input.below(16);
        bool grow = blocks.size() < target && live < LIVE_BOUND;
        size_t half = (threads.size() + 1) / 2;
        if (roles && (kind < (grow ? 9 : 5)) != (thread < half)) turn((thread + half) % threads.size());
        if (blocks.empty() || kind < (grow ? 9 : 5)) {
            allocate();
        } else if (kind == 15) {
            bool down = input.below(4) == 0;
            for (size_t n = 1 + input.below(100); n && !blocks.empty() && (down || grow); n--) {
                if (down) free(take(input.below(blocks.size())));
                else allocate();
            }
        } else if (kind > 12) {
            change(input.below(blocks.size()));
        } else {
            free(take(input.below(blocks.size())));
        }
    }

    // A fork, in whose child this thread alone goes on.
    void fork()
    {
        hak_ctx_fork_prepare(ctx);
        if (input.below(2)) {
            hak_ctx_fork_parent(ctx);
            return;
        }
        for (size_t i = 0; i < threads.size(); i++)
            if (i != thread) end(threads[i], input.below(2) != 0);
        hak_ctx_fork_child(ctx);
    }

    void limit()
    {
        hard = input.below(2) ? stats().committed_bytes + input.below(MiB) : 0;
        ceiling = hard ? hard : SIZE_MAX;
        hak_limit(ctx, 0, hard, nullptr, nullptr);
    }

    void define()
    {
        hak_label label = hak_label_define(ctx, ("label" + std::to_string(input.below(40))).c_str());
        if (label == 0 && hard == 0 && os.failed == failed_before) wrong("no label without a reason");
        labels = std::max(labels, (size_t)label);
    }

    void rarely(size_t what)
    {
        switch (what) {
        case 0:
            end(threads[thread], input.below(2) != 0);
            turn(thread);
            break;
        case 1:
            hak_ctx_thread_done(ctx);
            break;
        case 2:
            hak_ctx_flush(ctx);
            break;
        case 3:
            hak_ctx_trim(ctx);
            break;
        case 4:
            hak_ctx_tick(ctx, os.now += 600000000);
            break;
        case 5:
            os.fail_nth(input.below(20));
            break;
        case 6:
            limit();
            break;
        case 7:
            hak_ctx_peak_reset(ctx);
            break;
        case 8:
            fork();
            break;
        case 9:
            define();
            break;
        case 10:
            target = input.below(input.below(8) ? 600 : 5000);
            break;
        default:
            verify();
        }
    }

    void step()
    {
        steps++;
        failed_before = os.failed;
        size_t rare = input.below(churn);
        if (stay == 1 || rare < 12 || input.below(stay) == 0) turn(input.below(threads.size()));
        if (rare < 12) {
            operations.count++;
            rarely(rare);
            unchecked += 8;
        } else {
            operation();
        }
        // A look at each thread's heap.
        if (++unchecked > 16 + 8 * threads.size() || os.failed != failed_before) check_sums();
        if (!error.empty()) wrong(error.c_str());
        // All that is live, at times; few blocks often enough for what wrote over one to be known.
        if (steps % (64 + blocks.size() * 4) == 0) check_contents();
    }

    void check_contents()
    {
        for (const Block &b : blocks)
            if (!stamped(b.p, b.n, b.n, b.id)) wrong("contents");
    }

    void check_sums()
    {
        unchecked = 0;
        hak_stats s = stats();
        if (s.live_bytes != live || s.live_blocks != blocks.size()) wrong("sums of the context");
        if (s.committed_bytes != s.live_bytes + s.cached_bytes + s.metadata_bytes) wrong("committed");
        if (s.committed_bytes > ceiling) wrong("more than the limit");
        if (hard) ceiling = std::max(hard, s.committed_bytes);
    }

    void verify()
    {
        check_sums();
        hak_label_info infos[64];
        int n = hak_labels_stats(ctx, infos, std::size(infos));
        size_t bytes[64] = {}, count[64] = {};
        for (const Block &b : blocks) {
            bytes[b.label] += b.usable;
            count[b.label]++;
        }
        if (n != (int)labels + 1) wrong("number of labels");
        for (int i = 0; i < n; i++)
            if (infos[i].live_bytes != bytes[infos[i].label] || infos[i].live_blocks != count[infos[i].label])
                wrong("sums of labels");
        if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("hak_ctx_check");
        check_contents();
    }

    hak_stats stats() const
    {
        hak_stats s = {};
        s.size = sizeof s;
        if (hak_ctx_stats(ctx, &s) != 0) wrong("stats");
        return s;
    }
};

} // namespace

void __wrap_hk_lock_wait(void *)
{
    wrong("a lock was not dropped");
}

void __wrap_hk_assert_failed(const char *what)
{
    wrong(what);
}

void __asan_on_error()
{
    tell_operations();
}

void __ubsan_on_report()
{
    tell_operations();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run run(data, size);
    return 0;
}
