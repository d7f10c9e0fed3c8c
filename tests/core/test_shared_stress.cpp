// Random histories of threads on shared contexts against a shadow model: every block carries its contents,
// blocks change hands by mailboxes, threads end and begin, and at quiet points every figure has to be that of
// the shadow. HAK_TEST_SEED and HAK_TEST_OPS set seed and number of operations of one run.
#include "crew.h"
#include "heap.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

using namespace test;

namespace
{

const char *const LABELS[] = {"one", "two", "three", "four", "five"};
constexpr size_t LABEL_COUNT = 6, CONTEXTS = 2;

struct Block {
    char *p;
    size_t n;
    unsigned id;
    hak_label label;
    bool aligned;
    unsigned char ctx;
};

// Enough of a block to see an overlap of any two.
void paint(const Block &b)
{
    fill(b.p, std::min<size_t>(b.n, 128), b.id);
    if (b.n >= 192) fill(b.p + b.n - 64, 64, b.id + 1);
}

bool painted(const Block &b, size_t n)
{
    if (n < b.n) return filled(b.p, std::min<size_t>(n, 128), b.id);
    return filled(b.p, std::min<size_t>(b.n, 128), b.id) &&
           (b.n < 192 || filled(b.p + b.n - 64, 64, b.id + 1));
}

struct Mailbox {
    std::mutex lock;
    std::vector<Block> blocks;
};

struct Plan {
    size_t threads = 3;
    size_t ops = 10000; // of a thread between two quiet points
    size_t rounds = 3;
    size_t hard = 0; // limit of each context
    unsigned debug = 0;
    size_t magazine = 0;
    size_t fail_every = 0; // page requests that fail
    bool big = true;
};

class Stress
{
  public:
    Stress(const Plan &plan, uint64_t seed)
        : plan_(plan), seed_(seed), meeting_(plan.threads), mail_(plan.threads), kept_(plan.threads)
    {
        for (size_t c = 0; c < CONTEXTS; c++) {
            Options options = ctx_options(&errors_[c]);
            options.shared = true;
            options.labels = LABELS;
            options.label_count = LABEL_COUNT - 1;
            options.debug = plan.debug;
            options.magazine = plan.magazine;
            ctx_[c] = hak_ctx_new(space_.space, &options);
            REQUIRE(ctx_[c] != nullptr);
            REQUIRE(hak_limit(ctx_[c], 0, plan.hard, nullptr, nullptr) == 0);
        }
        if (plan.fail_every) space_.os.fail_each(plan.fail_every);
    }
    ~Stress()
    {
        for (hak_ctx *ctx : ctx_)
            hak_ctx_destroy(ctx);
    }

    void run()
    {
        Crew crew(plan_.threads, [&](size_t t) { thread(t); });
        std::string error = crew.join();
        REQUIRE(error == "");
        space_.os.fail_each(0);
        for (size_t c = 0; c < CONTEXTS; c++) {
            hak_ctx_flush(ctx_[c]);
            require_sound(ctx_[c]);
            CHECK(stats_of(ctx_[c]).live_blocks == 0);
            CHECK(errors_[c].take() == "");
        }
        CHECK(allocated > plan_.threads * plan_.rounds * plan_.ops / 8);
        if (plan_.hard || plan_.fail_every) CHECK(refused > 0);
    }

    std::atomic<uint64_t> allocated{0}, refused{0};

  private:
    struct Worker {
        size_t t;
        Random random;
        std::vector<Block> blocks;
        unsigned next_id;
    };

    // The shared context itself, or this thread's heap of it.
    hak_ctx *handle(Worker &w, size_t c)
    {
        hak_ctx *heap = w.random.below(2) ? hak_ctx_thread(ctx_[c]) : nullptr;
        return heap ? heap : ctx_[c];
    }

    void check(const Block &b, size_t n)
    {
        if (!painted(b, n)) wrong("a block of " + std::to_string(b.n) + " bytes lost its contents");
    }

    size_t size(Worker &w)
    {
        size_t kind = w.random.below(1000);
        if (kind < 800) return w.random.below(600);
        if (kind < 960) return w.random.below(10 * KiB);
        if (kind < 993) return w.random.below(100 * KiB);
        return plan_.big ? w.random.below(3 * MiB) : w.random.below(32 * KiB);
    }

    void allocate(Worker &w)
    {
        Block b{};
        b.ctx = (unsigned char)w.random.below(CONTEXTS);
        hak_ctx *ctx = handle(w, b.ctx);
        b.n = size(w);
        b.id = w.next_id++;
        size_t align = 8;
        switch (w.random.below(8)) {
        case 0:
            b.p = (char *)hak_alloc(ctx, b.n);
            break;
        case 1:
            b.label = (hak_label)w.random.below(LABEL_COUNT);
            b.p = (char *)hak_calloc_cs(ctx, 1, b.n, b.label, 0);
            if (b.p && !all_bytes(b.p, b.n, 0)) wrong("calloc is not zero");
            break;
        case 2:
            align = (size_t)8 << w.random.below(10);
            b.aligned = true;
            b.label = (hak_label)w.random.below(LABEL_COUNT);
            b.p = (char *)hak_aligned_alloc_cs(ctx, align, b.n, b.label, 0);
            break;
        default:
            b.label = (hak_label)w.random.below(LABEL_COUNT);
            b.p = (char *)hak_alloc_cs(ctx, b.n, b.label, HAK_CALLSITE());
        }
        if (!b.p) {
            refused++;
            expect(plan_.hard || plan_.fail_every, "no memory without a reason");
            for (size_t i = w.blocks.size() / 4; i; i--)
                release(w, w.random.below(w.blocks.size()));
            return;
        }
        allocated++;
        if (b.n >= 8 && addr(b.p) % align) wrong("alignment");
        if (hak_usable_size(ctx, b.p) < b.n) wrong("usable size below what was asked for");
        paint(b);
        w.blocks.push_back(b);
    }

    void reallocate(Worker &w, size_t i)
    {
        Block &b = w.blocks[i];
        hak_ctx *ctx = handle(w, b.ctx);
        size_t n = size(w);
        hak_label label = b.label;
        void *p;
        switch (b.aligned ? w.random.below(2) : w.random.below(3)) {
        case 0:
            p = hak_realloc(ctx, b.p, n);
            break;
        case 1:
            label = (hak_label)w.random.below(LABEL_COUNT);
            p = hak_realloc_cs(ctx, b.p, n, label, 0);
            break;
        default:
            p = hak_realloc_sized(ctx, b.p, b.n, n);
        }
        if (!p) {
            refused++;
            expect(plan_.hard || plan_.fail_every, "realloc: no memory without a reason");
            check(b, b.n);
            return;
        }
        b.p = (char *)p;
        check(b, std::min(n, b.n));
        b.n = n;
        b.label = label;
        b.aligned = false;
        paint(b);
    }

    void release(Worker &w, size_t i)
    {
        std::swap(w.blocks[i], w.blocks.back());
        Block b = w.blocks.back();
        w.blocks.pop_back();
        check(b, b.n);
        hak_ctx *ctx = handle(w, b.ctx);
        if (!b.aligned && w.random.below(2)) hak_free_sized(ctx, b.p, b.n);
        else hak_free(ctx, b.p);
    }

    void rare(Worker &w)
    {
        size_t c = w.random.below(CONTEXTS);
        switch (w.random.below(8)) {
        case 0:
            hak_ctx_flush(ctx_[c]);
            break;
        case 1:
            if (w.random.below(4) == 0) hak_ctx_trim(ctx_[c]);
            break;
        case 2:
            hak_ctx_tick(ctx_[c], 0);
            break;
        case 3:
            hak_ctx_thread_done(ctx_[c]);
            break;
        case 4: {
            hak_stats s{};
            s.size = sizeof s;
            expect(hak_ctx_stats(ctx_[c], &s) == 0, "stats");
            expect(s.live_bytes < GiB && s.committed_bytes < GiB && s.cached_bytes < GiB, "absurd");
            expect(!plan_.hard || s.committed_bytes <= plan_.hard, "over the limit");
            break;
        }
        case 5: {
            hak_label_info infos[LABEL_COUNT];
            expect(hak_labels_stats(ctx_[c], infos, LABEL_COUNT) == (int)LABEL_COUNT, "labels");
            for (const hak_label_info &info : infos)
                expect(info.live_bytes < GiB, "absurd label");
            break;
        }
        default:
            if (!w.blocks.empty()) {
                const Block &b = w.blocks[w.random.below(w.blocks.size())];
                expect(hak_owns(ctx_[b.ctx], b.p) && !hak_owns(ctx_[1 - b.ctx], b.p), "owns");
                expect(hak_label_of(handle(w, b.ctx), b.p) == b.label, "label of");
                expect(hak_ctx_of(space_.space, b.p) == ctx_[b.ctx], "ctx of");
            }
        }
    }

    void post(Worker &w)
    {
        Mailbox &box = mail_[w.random.below(plan_.threads)];
        std::lock_guard<std::mutex> hold(box.lock);
        for (size_t k = std::min<size_t>(w.blocks.size(), w.random.below(60)); k; k--) {
            box.blocks.push_back(w.blocks.back());
            w.blocks.pop_back();
        }
    }

    void fetch(Worker &w)
    {
        std::lock_guard<std::mutex> hold(mail_[w.t].lock);
        w.blocks.insert(w.blocks.end(), mail_[w.t].blocks.begin(), mail_[w.t].blocks.end());
        mail_[w.t].blocks.clear();
    }

    void operate(Worker &w)
    {
        size_t what = w.random.below(1000);
        if (w.blocks.size() > 500) what %= 700;
        if (what < 380 && !w.blocks.empty()) release(w, w.random.below(w.blocks.size()));
        else if (what < 450 && !w.blocks.empty()) reallocate(w, w.random.below(w.blocks.size()));
        else if (what < 465) post(w);
        else if (what < 480) fetch(w);
        else if (what < 485) rare(w);
        else if (what < 486)
            for (size_t i = w.blocks.size() / 2; i; i--) // a sweep, in the order of allocation
                release(w, w.blocks.size() - 1);
        else allocate(w);
    }

    // A thread of the crew lives in several threads of the system, some of which end without goodbye.
    void thread(size_t t)
    {
        Worker w{t, Random(seed_ * 1000 + t), {}, (unsigned)(t << 24)};
        try {
            for (size_t r = 0; r < plan_.rounds; r++) {
                for (size_t part = 0; part < 4; part++) {
                    Crew inner;
                    inner.add([&] {
                        for (size_t i = plan_.ops / 4; i && !failed_; i--)
                            operate(w);
                        if (w.random.below(2)) hak_ctx_thread_done(ctx_[w.random.below(CONTEXTS)]);
                    });
                    std::string error = inner.join();
                    if (error != "") wrong(error);
                }
                kept_[t] = w.blocks;
                meeting_.meet([&] { quiet(); });
            }
            fetch(w);
            while (!w.blocks.empty())
                release(w, w.blocks.size() - 1);
            meeting_.meet([&] { // what others posted after the last look
                for (Mailbox &box : mail_)
                    for (; !box.blocks.empty(); box.blocks.pop_back())
                        hak_free(ctx_[box.blocks.back().ctx], box.blocks.back().p);
            });
        } catch (...) {
            failed_ = true;
            meeting_.leave();
            throw;
        }
    }

    // Nobody else is inside a call: every figure is exact.
    void quiet()
    {
        size_t bytes[CONTEXTS][LABEL_COUNT] = {}, blocks[CONTEXTS][LABEL_COUNT] = {};
        std::vector<const void *> live[CONTEXTS];
        auto count = [&](const Block &b) {
            bytes[b.ctx][b.label] += hak_usable_size(ctx_[b.ctx], b.p);
            blocks[b.ctx][b.label]++;
            live[b.ctx].push_back(b.p);
            check(b, b.n);
        };
        for (auto &list : kept_)
            std::for_each(list.begin(), list.end(), count);
        for (Mailbox &box : mail_)
            std::for_each(box.blocks.begin(), box.blocks.end(), count);
        for (size_t c = 0; c < CONTEXTS; c++) {
            hak_label_info infos[LABEL_COUNT];
            hak_labels_stats(ctx_[c], infos, LABEL_COUNT);
            size_t all_bytes = 0, all_blocks = 0;
            for (size_t l = 0; l < LABEL_COUNT; l++) {
                std::ostringstream what;
                what << "label " << l << " of context " << c << ": " << infos[l].live_bytes << " bytes in "
                     << infos[l].live_blocks << " blocks, not " << bytes[c][l] << " in " << blocks[c][l];
                if (infos[l].live_bytes != bytes[c][l] || infos[l].live_blocks != blocks[c][l])
                    wrong(what.str());
                all_bytes += bytes[c][l];
                all_blocks += blocks[c][l];
            }
            hak_stats s{};
            s.size = sizeof s;
            hak_ctx_stats(ctx_[c], &s);
            std::ostringstream what;
            what << "context " << c << ": " << s.live_bytes << " bytes in " << s.live_blocks
                 << " blocks, not " << all_bytes << " in " << all_blocks;
            if (s.live_bytes != all_bytes || s.live_blocks != all_blocks) wrong(what.str());
            expect(s.committed_bytes == s.live_bytes + s.cached_bytes + s.metadata_bytes, "committed");
            expect(!plan_.hard || s.committed_bytes <= plan_.hard, "over the limit");
            std::vector<const void *> seen;
            hak_ctx_visit(
                ctx_[c],
                [](void *user, const hak_block *b) {
                    static_cast<std::vector<const void *> *>(user)->push_back(b->p);
                    return true;
                },
                &seen);
            std::sort(seen.begin(), seen.end());
            std::sort(live[c].begin(), live[c].end());
            expect(seen == live[c], "the visit shows other blocks than those that live");
            Errors faults;
            hak_ctx_check(ctx_[c], Errors::record, &faults);
            if (!faults.list.empty()) wrong("check: " + faults.list[0].what);
        }
    }

    Plan plan_;
    uint64_t seed_;
    TestSpace space_;
    Errors errors_[CONTEXTS];
    hak_ctx *ctx_[CONTEXTS];
    Meeting meeting_;
    std::vector<Mailbox> mail_;
    std::vector<std::vector<Block>> kept_;
    std::atomic<bool> failed_{false};
};

void stress(const Plan &plan, uint64_t seeds)
{
    const char *seed = std::getenv("HAK_TEST_SEED"), *ops = std::getenv("HAK_TEST_OPS");
    Plan p = plan;
    if (ops) p.ops = std::strtoull(ops, nullptr, 0);
    for (uint64_t s = 1; s <= seeds; s++) {
        uint64_t used = seed ? std::strtoull(seed, nullptr, 0) : s;
        INFO("HAK_TEST_SEED=" << used << " HAK_TEST_OPS=" << p.ops);
        Stress(p, used).run();
        if (seed) return;
    }
}

} // namespace

TEST_CASE("stress: three threads")
{
    Plan plan;
    plan.ops = 8000 * EFFORT;
    stress(plan, EFFORT);
}

TEST_CASE("stress: eight threads, short lives")
{
    Plan plan;
    plan.threads = 8;
    plan.ops = 1000;
    plan.rounds = 2;
    stress(plan, 2 * EFFORT);
}

TEST_CASE("stress: at a hard limit")
{
    Plan plan;
    plan.threads = 4;
    plan.ops = 3000 * EFFORT;
    plan.hard = 6 * MiB;
    stress(plan, 2);
}

TEST_CASE("stress: page requests fail now and then")
{
    Plan plan;
    plan.ops = 3000 * EFFORT;
    plan.fail_every = 5;
    stress(plan, 2);
}

TEST_CASE("stress: every free checked, contents poisoned")
{
    Plan plan;
    plan.ops = 2000 * EFFORT;
    plan.debug = HAK_DEBUG_CHECK | HAK_DEBUG_POISON;
    plan.big = false;
    stress(plan, 1);
}

TEST_CASE("stress: without magazines, and with the smallest")
{
    Plan plan;
    plan.ops = 2000 * EFFORT;
    plan.magazine = GENERATE((size_t)HAK_NONE, (size_t)2);
    stress(plan, 1);
}
