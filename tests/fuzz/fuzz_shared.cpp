// Fuzz target: a shared context used by four threads in turn, as the input says whose turn it is, with requests of
// pages that fail. What each call did is compared with a model: contents, labels, sums.
#include "input.h"

#include "heap.h"

#include <hakmem/guard.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace test;

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_shared: %s\n", what);
    std::abort();
}

// A thread that does what it is given, while whoever gave it waits.
class Hand
{
  public:
    ~Hand()
    {
        end();
    }
    void run(std::function<void()> work)
    {
        if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
        std::unique_lock<std::mutex> hold(lock_);
        work_ = std::move(work);
        changed_.notify_all();
        changed_.wait(hold, [this] { return !work_; });
    }
    void end()
    {
        if (!thread_.joinable()) return;
        {
            std::unique_lock<std::mutex> hold(lock_);
            ending_ = true;
            changed_.notify_all();
        }
        thread_.join();
        ending_ = false;
    }

  private:
    void loop()
    {
        std::unique_lock<std::mutex> hold(lock_);
        for (;;) {
            changed_.wait(hold, [this] { return work_ || ending_; });
            if (!work_) return;
            work_();
            work_ = nullptr;
            changed_.notify_all();
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    std::function<void()> work_;
    bool ending_ = false;
    std::thread thread_;
};

struct Block {
    char *p;
    size_t n, usable;
    unsigned id;
    hak_label label;
};

const char *const LABELS[] = {"red", "green", "blue"};

struct Run {
    Input input;
    FakeOs os;
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr;
    std::array<Hand, 4> hands;
    std::vector<Block> blocks;
    Errors errors;
    unsigned next = 1;
    size_t live = 0, hard = 0;

    Run(const uint8_t *data, size_t size) : input(data, size)
    {
        SpaceOptions pages = space_options(os, 4 * MiB << input.below(4));
        if (input.below(3) == 0) pages.retained_bytes = pages.retained_percent = HAK_NONE;
        space = hak_space_new(&pages);
        Options options = ctx_options(&errors);
        options.shared = true;
        options.mode = (hak_mode)input.below(4);
        options.workload = (hak_workload)input.below(3);
        options.max_align = input.below(4) == 0;
        options.labels = LABELS;
        options.label_count = input.below(4);
        size_t debug = input.below(8);
        options.debug = debug == 0 ? HAK_DEBUG_CHECK : debug == 1 ? HAK_DEBUG_POISON : debug < 4 ? HAK_DEBUG_GUARD : 0;
        options.guard_every = 1 + input.below(30);
        ctx = space ? hak_ctx_new(space, &options) : nullptr;
        if (!ctx) wrong("no context");
        size_t n = options.label_count;
        for (; input.left(); operations.count++)
            step(n);
        os.fail_nth(0);
        hak_limit(ctx, 0, 0, nullptr, nullptr);
        if (!errors.list.empty()) wrong(errors.list[0].what.c_str());
        verify();
        if (input.below(2)) {
            for (Block &b : blocks)
                hak_free(ctx, b.p);
            blocks.clear();
            live = 0;
            verify();
        }
        hak_ctx_destroy(ctx);
        hak_space_delete(space);
        std::string report = os.close();
        if (report != "") wrong(report.c_str());
    }

    size_t some_size()
    {
        switch (input.below(8)) {
        case 0: return input.below(32 * KiB);
        case 1: return input.below(400 * KiB);
        case 2: return input.below(16) ? input.below(100) : MiB + input.below(2 * MiB);
        default: return input.below(600);
        }
    }

    // What a call returned for `b`, whose p is the block or NULL.
    void made(Block b, size_t align, bool zero)
    {
        if (!b.p) {
            if (os.failed == 0 && hard == 0 && b.n < 64 * MiB) wrong("NULL without a reason");
            return;
        }
        b.usable = hak_usable_size(ctx, b.p);
        if (b.usable < b.n || b.usable == 0 || addr(b.p) % align) wrong("size or alignment");
        if (hak_label_of(ctx, b.p) != b.label) wrong("label of a new block");
        if (zero && !all_bytes(b.p, b.n, 0)) wrong("not zero");
        fill(b.p, b.n, b.id);
        live += b.usable;
        blocks.push_back(b);
    }

    Block take(size_t at)
    {
        Block b = blocks[at];
        if (!filled(b.p, b.n, b.id)) wrong("contents");
        if (hak_usable_size(ctx, b.p) != b.usable || hak_label_of(ctx, b.p) != b.label) wrong("block changed");
        blocks[at] = blocks.back();
        blocks.pop_back();
        live -= b.usable;
        return b;
    }

    void change(size_t at)
    {
        Block b = take(at), after = b;
        after.n = some_size();
        after.id = next++;
        after.p = (char *)hak_realloc(ctx, b.p, after.n);
        if (!after.p) {
            if (after.n <= b.n) wrong("a shrink failed");
            if (!filled(b.p, b.n, b.id)) wrong("contents after a failed realloc");
            made(b, 1, false);
            return;
        }
        if (!filled(after.p, std::min(b.n, after.n), b.id)) wrong("contents after realloc");
        made(after, 1, false);
    }

    void operation(size_t labels)
    {
        hak_label label = (hak_label)input.below(labels + 1);
        size_t kind = input.below(16);
        if (kind < 6) {
            size_t n = some_size();
            made({(char *)hak_alloc_cs(ctx, n, label, 7), n, 0, next++, label}, 8, false);
        } else if (kind == 6) {
            size_t n = some_size();
            made({(char *)hak_calloc_cs(ctx, 1, n, label, 7), n, 0, next++, label}, 8, true);
        } else if (kind == 7) {
            size_t n = some_size(), align = (size_t)1 << input.below(16);
            made({(char *)hak_aligned_alloc_cs(ctx, align, n, label, 7), n, 0, next++, label}, align, false);
        } else if (blocks.empty()) {
            return;
        } else if (kind < 10) {
            change(input.below(blocks.size()));
        } else {
            // Several: batches are what frees of other threads go by.
            for (size_t n = 1 + input.below(kind == 15 ? 300 : 4); n && !blocks.empty(); n--)
                hak_free(ctx, take(input.below(blocks.size())).p);
        }
    }

    void step(size_t labels)
    {
        size_t rare = input.below(64), hand = input.below(hands.size());
        if (rare == 0) hands[hand].end();
        else if (rare == 1) hands[hand].run([&] { hak_ctx_thread_done(ctx); });
        else if (rare == 2) hands[hand].run([&] { hak_ctx_flush(ctx); });
        else if (rare == 3) hands[hand].run([&] { hak_ctx_trim(ctx); });
        else if (rare == 4) hands[hand].run([&] { hak_ctx_tick(ctx, os.now += 600000000); });
        else if (rare == 5) os.fail_nth(input.below(20));
        else if (rare == 6) {
            hard = input.below(2) ? stats().committed_bytes + input.below(MiB) : 0;
            hak_limit(ctx, 0, hard, nullptr, nullptr);
        } else if (rare == 7) verify();
        else hands[hand].run([&] { operation(labels); });
    }

    void verify()
    {
        hak_stats s = stats();
        if (s.live_bytes != live || s.live_blocks != blocks.size()) wrong("sums of the context");
        if (s.committed_bytes != s.live_bytes + s.cached_bytes + s.metadata_bytes) wrong("committed");
        Totals labelled = label_sums();
        if (!(labelled == Totals{live, blocks.size()})) {
            std::fprintf(stderr, "labels: %zu bytes, %zu blocks; model: %zu, %zu\n", labelled.bytes, labelled.blocks,
                         live, blocks.size());
            wrong("sums of labels");
        }
        if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("hak_ctx_check");
        for (const Block &b : blocks)
            if (!filled(b.p, b.n, b.id)) wrong("contents");
    }

    hak_stats stats() const
    {
        hak_stats s = {};
        s.size = sizeof s;
        if (hak_ctx_stats(ctx, &s) != 0) wrong("stats");
        return s;
    }

    Totals label_sums()
    {
        hak_label_info infos[4];
        int n = hak_labels_stats(ctx, infos, 4);
        Totals t;
        for (int i = 0; i < n; i++) {
            t.bytes += infos[i].live_bytes;
            t.blocks += infos[i].live_blocks;
        }
        return t;
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run run(data, size);
    return 0;
}
