#include "shadow.h"

#include "stamp.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace test
{

namespace
{

// Large enough to reach every layer, small enough to keep many operations a second.
constexpr size_t LIVE_BOUND = 40 * MiB;
constexpr size_t GROUP_LIMIT = 24 * MiB;

const char *const GIVEN_LABELS[] = {"label7", "given", "label8"};

} // namespace

Shadow::Shadow(std::function<uint64_t()> decide, unsigned every, bool keep)
    : decide_(std::move(decide)), os_(keep), every_(every)
{
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    options.mode = (hak_mode)below(4);
    options.tuning = below(2) ? &tuning : nullptr;
    options.os = os_.table();
    options.reserve = 4 * MiB << below(5);
    tuning.retained_bytes = below(4) ? 0 : HAK_NONE;
    tuning.retained_percent = below(4) ? 0 : HAK_NONE;
    tuning.purge_ns = 1000 * 1000 * (1 + below(100));
    space_ = hak_space_new(&options);
    group_ = hak_quota_new(nullptr, GROUP_LIMIT);
    if (!space_ || !group_) throw std::logic_error("no space or no quota");
    for (Heap &h : heaps_)
        open(h);
}

Shadow::~Shadow()
{
    for (Heap &h : heaps_)
        hak_ctx_destroy(h.ctx);
    hak_space_delete(space_);
    hak_quota_delete(group_);
    os_.close();
}

void Shadow::wrong(const Heap &h, const std::string &what) const
{
    throw std::logic_error("step " + std::to_string(steps) + ", heap " + std::to_string(&h - heaps_.data()) +
                           ": " + what);
}

size_t Shadow::live_bytes() const
{
    size_t sum = 0;
    for (const Heap &h : heaps_)
        sum += h.live;
    return sum;
}

void Shadow::open(Heap &h)
{
    h = Heap{};
    hak_options options = HAK_OPTIONS_INIT;
    options.on_error = [](void *user, hak_error error, const void *, const char *what) {
        static_cast<Heap *>(user)->error = std::string(hak_error_name(error)) + " " + (what ? what : "");
    };
    options.error_user = &h;
    h.in_group = below(2) == 0;
    options.quota = h.in_group ? group_ : nullptr;
    const size_t debug = below(8);
    h.checked = debug < 2;
    options.debug = debug == 0 ? HAK_DEBUG_CHECK : debug == 1 ? HAK_DEBUG_POISON : 0;
    if (below(4) == 0) options.debug |= HAK_DEBUG_GUARD;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.guard_every = 1 + below(40);
    options.mode = (hak_mode)below(4);
    options.workload = (hak_workload)below(3);
    options.tuning = below(4) ? &tuning : nullptr;
    tuning.magazine = below(129);
    if (tuning.magazine == 1) tuning.magazine = HAK_NONE;
    tuning.packed_bytes = below(3) == 0 ? HAK_NONE : below(3) == 0 ? below(512 * KiB) : 0;
    tuning.big_cache = below(4) == 0 ? HAK_NONE : below(4) == 0 ? 4 * MiB : 0;
    options.labels = GIVEN_LABELS;
    options.label_count = below(2) ? below(4) : 0;
    tuning.first_offset = below(4) == 0 ? 16 * (unsigned)below(4) : 0;
    options.shared = below(6) == 0;
    h.ctx = hak_ctx_new(space_, &options);
    if (!h.ctx) {
        check_null(h);
        return;
    }
    size_t habit = below(5);
    h.habit = habit < 2 ? Habit::MIXED : habit < 4 ? Habit::STEPS : Habit::SHRINKS;
    h.target = h.habit == Habit::STEPS ? 5 + below(100) : 20 + below(6000);
    h.large = below(4) == 0;
    h.ceiling = SIZE_MAX;
    for (size_t i = 0; i <= options.label_count; i++)
        h.labels.push_back((hak_label)i);
}

void Shadow::close(Heap &h, bool retire)
{
    if (retire) {
        hak_ctx_retire(h.ctx);
        h.retired = true;
        if (!h.blocks.empty() && hak_alloc(h.ctx, 1 + below(100000)))
            wrong(h, "a retired context gave a block");
        bool live = !h.blocks.empty();
        for (; !h.blocks.empty(); steps++)
            release(h, below(h.blocks.size()));
        if (live && !h.error.empty()) wrong(h, h.error);
    } else {
        hak_ctx_destroy(h.ctx);
    }
    h.ctx = nullptr;
    h.blocks.clear();
    h.order.clear();
    h.live = 0;
}

size_t Shadow::random_size(const Heap &h)
{
    size_t r = below(1000);
    if (h.habit == Habit::STEPS && r < 990) return below(r < 900 ? 1000 : 3000);
    if (r < 700) return below(260);
    if (r < 900) return below(3000);
    if (r < 985 || (!h.large && below(10))) return below(40000);
    if (r < 998) return below(600000);
    return below(5000000);
}

// To which a block of n bytes is resized.
size_t Shadow::next_size(const Heap &h, size_t n)
{
    size_t step = 1 + below(14);
    if (h.habit == Habit::STEPS && below(10)) return below(3) ? n + step : n - std::min(n, step);
    if (h.habit == Habit::SHRINKS && below(4)) return n - below(below(2) ? n + 1 : n / 4 + 1);
    switch (below(5)) {
    case 0:
        return random_size(h);
    case 1:
        return n + below(100);
    case 2:
        return n / 2;
    case 3:
        return n - std::min(n, step);
    default:
        return n + n / 2;
    }
}

// What the caller tells of a block's size: what was last asked for, or anything, for it does no harm.
size_t Shadow::told_size(const Heap &h, const Block &b)
{
    switch (below(6)) {
    case 0:
        return b.n + 1 + below(14);
    case 1:
        return b.n - std::min(b.n, 1 + below(14));
    case 2:
        return below(2) ? b.usable : random_size(h);
    default:
        return b.n;
    }
}

hak_label Shadow::random_label(Heap &h)
{
    return h.labels[below(h.labels.size())];
}

void Shadow::add_to_sums(Heap &h, const Block &b)
{
    h.live += b.usable;
    h.sums[b.label].bytes += b.usable;
    h.sums[b.label].blocks++;
}

void Shadow::drop_from_sums(Heap &h, const Block &b)
{
    h.live -= b.usable;
    h.sums[b.label].bytes -= b.usable;
    h.sums[b.label].blocks--;
}

// NULL is right only with a reason.
void Shadow::check_null(Heap &h)
{
    refusals++;
    if (h.hard == 0 && !h.in_group && !h.retired && os_.failed == failed_before_)
        wrong(h, "NULL without a reason");
}

// align: what was asked for; 0 = that of the block's former size.
void Shadow::check_new(Heap &h, Block &b, size_t align)
{
    b.usable = hak_usable_size(h.ctx, b.p);
    uintptr_t at = reinterpret_cast<uintptr_t>(b.p);
    if (b.usable < b.n || b.usable == 0)
        wrong(h, "usable size " + std::to_string(b.usable) + " of " + std::to_string(b.n));
    size_t natural = b.n > 32 * KiB ? PAGE : b.n >= 16 && b.n % 16 == 0 ? 16 : 8;
    if (align && at % std::max(align, natural)) wrong(h, "alignment of a block of " + std::to_string(b.n));
    if (!os_.usable(b.p, b.usable)) wrong(h, "pages of a new block that nobody committed");
    if (hak_label_of(h.ctx, b.p) != b.label) wrong(h, "label of a new block");
    stamp(b.p, b.n, b.id);
}

void Shadow::check_contents(const Heap &h, const Block &b, size_t n) const
{
    if (!stamped(b.p, n, b.n, b.id)) wrong(h, "contents of a block of " + std::to_string(b.n));
}

// Whether what was told is right is known where everything is checked.
void Shadow::check_told(Heap &h, bool right) const
{
    bool noticed = h.error.find("HAK_E_SIZE") == 0;
    if (noticed != (h.checked && !right)) wrong(h, "told size: " + h.error);
    if (noticed) h.error.clear();
}

// Enters a block where it lies.
void Shadow::enter(Heap &h, size_t index)
{
    auto [at, is_new] = h.order.emplace(h.blocks[index].p, index);
    if (!is_new) wrong(h, "a block that is in use was handed out");
    h.blocks[index].entry = at;
}

void Shadow::check_edges(const Heap &h, const Block &b) const
{
    if (!edges_stamped(b.p, b.n, b.id)) wrong(h, "contents at an end of a block of " + std::to_string(b.n));
}

// The blocks next to this one, or to one that was before it, keep apart, and hold at their ends what they
// held.
void Shadow::check_around(Heap &h, Order::iterator at) const
{
    if (at != h.order.begin()) --at;
    const char *before = nullptr;
    for (int i = 0; i < 3 && at != h.order.end(); ++i, ++at) {
        const Block &b = h.blocks[at->second];
        if (before > b.p) wrong(h, "blocks overlap");
        before = b.p + b.usable;
        check_edges(h, b);
    }
}

void Shadow::check_all(const Heap &h) const
{
    for (const Block &b : h.blocks)
        check_contents(h, b, b.n);
}

void Shadow::allocate(Heap &h)
{
    Block b{};
    b.n = random_size(h);
    b.id = next_id_++;
    size_t form = below(10), align = 1;
    bool cleared = false;
    if (form < 6) {
        b.label = random_label(h);
        b.site = below(50);
        b.p = (char *)hak_alloc_cs(h.ctx, b.n, b.label, b.site);
    } else if (form < 7) {
        b.p = (char *)hak_alloc(h.ctx, b.n);
    } else if (form < 9) {
        size_t count = 1 + below(4);
        b.n = b.n / count * count;
        cleared = true;
        b.label = form == 7 ? random_label(h) : (hak_label)0;
        b.p = (char *)(form == 7 ? hak_calloc_cs(h.ctx, count, b.n / count, b.label, 0)
                                 : hak_calloc(h.ctx, b.n / count, count));
    } else {
        align = (size_t)1 << below(below(20) ? 13 : 21);
        b.label = random_label(h);
        b.p = (char *)hak_aligned_alloc_cs(h.ctx, align, b.n, b.label, 0);
    }
    if (!b.p) {
        check_null(h);
        return;
    }
    if (cleared && !zero(b.p, b.n)) wrong(h, "calloc of " + std::to_string(b.n) + " is not zero");
    check_new(h, b, align);
    add_to_sums(h, b);
    h.blocks.push_back(b);
    enter(h, h.blocks.size() - 1);
    check_around(h, h.blocks.back().entry);
    most_blocks = std::max(most_blocks, h.blocks.size());
}

void Shadow::reallocate(Heap &h, size_t index)
{
    Block &b = h.blocks[index], old = b;
    size_t n = next_size(h, b.n), told = told_size(h, b), form = below(4);
    if (n > 8 * MiB) n = below(100);
    bool sized = form % 2;
    hak_label label = form < 2 ? b.label : random_label(h);
    char *p;
    if (form < 2) p = (char *)(sized ? hak_realloc_sized(h.ctx, b.p, told, n) : hak_realloc(h.ctx, b.p, n));
    else
        p = (char *)(sized ? hak_realloc_sized_cs(h.ctx, b.p, told, n, label, 9)
                           : hak_realloc_cs(h.ctx, b.p, n, label, 9));
    check_told(h, !sized || told == b.n);
    if (!p) {
        if (sized && n <= b.n) wrong(h, "a shrink failed");
        check_null(h);
        check_contents(h, b, b.n);
        if (hak_usable_size(h.ctx, b.p) != b.usable || hak_block_size(h.ctx, b.p) != b.usable ||
            hak_label_of(h.ctx, b.p) != b.label)
            wrong(h, "a failed realloc changed the block");
        check_around(h, b.entry);
        return;
    }
    if (p != old.p) {
        auto next = h.order.erase(b.entry);
        check_around(h, next);
        b.p = p;
        enter(h, index);
    }
    check_contents(h, b, std::min(b.n, n));
    drop_from_sums(h, old);
    b.n = n;
    b.label = label;
    b.id = next_id_++;
    // A block that fits and for which there is no other stays where it is, whatever its alignment.
    bool pressed = h.hard || h.in_group || os_.failed != failed_before_;
    check_new(h, b, pressed && p == old.p ? 0 : 1);
    add_to_sums(h, b);
    check_around(h, b.entry);
}

// Returns the entry of what follows.
Shadow::Order::iterator Shadow::forget(Heap &h, size_t index)
{
    auto next = h.order.erase(h.blocks[index].entry);
    if (index + 1 < h.blocks.size()) {
        h.blocks[index] = h.blocks.back();
        h.blocks[index].entry->second = index;
    }
    h.blocks.pop_back();
    return next;
}

void Shadow::release(Heap &h, size_t index)
{
    Block b = h.blocks[index];
    auto next = forget(h, index);
    check_contents(h, b, b.n);
    drop_from_sums(h, b);
    size_t form = below(5), told = told_size(h, b);
    if (form == 0) hak_free(h.ctx, b.p);
    else if (form == 1) hak_space_free(space_, b.p);
    else if (form == 2) hak_free_cs(h.ctx, b.p, 77);
    else hak_free_sized(h.ctx, b.p, told);
    check_told(h, form < 3 || told == b.n);
    if (!h.retired) check_around(h, next);
}

// A collector's sweep: many blocks in the order of their addresses.
void Shadow::sweep(Heap &h)
{
    std::sort(h.blocks.begin(), h.blocks.end(), [](const Block &a, const Block &b) { return a.p < b.p; });
    size_t keep = 2 + below(20), count = h.blocks.size();
    std::vector<Block> rest;
    for (size_t i = 0; i < count; i++) {
        Block b = h.blocks[i];
        if (b.id % keep == 0) {
            rest.push_back(b);
            continue;
        }
        check_contents(h, b, b.n);
        drop_from_sums(h, b);
        hak_free(h.ctx, b.p);
        steps++;
    }
    // Decisions must not depend on where the system maps memory, or a seed would not reproduce.
    std::sort(rest.begin(), rest.end(), [](const Block &a, const Block &b) { return a.id < b.id; });
    h.blocks = std::move(rest);
    h.order.clear();
    for (size_t i = 0; i < h.blocks.size(); i++)
        enter(h, i);
}

void Shadow::trim(Heap &h)
{
    size_t before = os_.committed();
    size_t back = hak_ctx_trim(h.ctx);
    if (back != before - os_.committed())
        wrong(h, "trim told " + std::to_string(back) + " for " + std::to_string(before - os_.committed()));
    if (h.blocks.size() < 200) check_all(h);
}

void Shadow::rare(Heap &h)
{
    switch (below(14)) {
    case 0:
        sweep(h);
        break;
    case 1:
        trim(h);
        break;
    case 2:
        hak_ctx_flush(h.ctx);
        if (hak_ctx_live_bytes(h.ctx) != h.live) wrong(h, "hak_ctx_live_bytes after a flush");
        break;
    case 3:
    case 4:
        os_.now += below(200) * 1000000;
        hak_ctx_tick(h.ctx, below(2) ? os_.now.load() : 0);
        break;
    case 5:
    case 6: {
        hak_label label = hak_label_define(h.ctx, ("label" + std::to_string(below(300))).c_str());
        bool full = h.labels.size() > HAK_LABELS_MAX && h.error.find("HAK_E_LABEL") == 0;
        if (label == 0 && !full) check_null(h);
        else if (label && std::find(h.labels.begin(), h.labels.end(), label) == h.labels.end())
            h.labels.push_back(label);
        if (full) h.error.clear();
        break;
    }
    case 7:
    case 8: {
        // Above or below what is committed; often none.
        hak_stats stats;
        stats.size = sizeof stats;
        hak_ctx_stats(h.ctx, &stats);
        size_t hard = below(2) ? 0 : stats.committed_bytes / 2 + below(stats.committed_bytes + 1);
        if (hak_limit(h.ctx, 0, hard, nullptr, nullptr) != 0) wrong(h, "hak_limit refused");
        h.hard = hard;
        h.ceiling = hard ? std::max(hard, stats.committed_bytes) : SIZE_MAX;
        break;
    }
    case 9:
    case 10:
        os_.fail_nth(1 + below(3));
        disarm_at_ = steps + 200;
        break;
    case 11:
        h.target = 20 + below(below(4) ? 3000 : 12000);
        break;
    case 12:
        if (below(4) == 0) {
            close(h, below(2) == 0);
            open(h);
        }
        break;
    default: {
        char local;
        const void *wild = reinterpret_cast<const void *>((uintptr_t)(decide_() >> below(40)));
        if (hak_owns(h.ctx, &local) || hak_ctx_of(space_, &local)) wrong(h, "owns the stack");
        hak_ctx *owner = hak_ctx_of(space_, wild);
        if (hak_owns(h.ctx, wild) != (owner == h.ctx && owner)) wrong(h, "hak_owns and hak_ctx_of differ");
    }
    }
}

void Shadow::check_stats(Heap &h)
{
    h.unchecked = 0;
    hak_stats s;
    s.size = sizeof s;
    if (hak_ctx_stats(h.ctx, &s) != 0) wrong(h, "hak_ctx_stats failed");
    if (s.live_bytes != h.live || s.live_blocks != h.blocks.size())
        wrong(h, "live " + std::to_string(s.live_bytes) + " in " + std::to_string(s.live_blocks) +
                     ", the shadow has " + std::to_string(h.live) + " in " + std::to_string(h.blocks.size()));
    if (s.committed_bytes != s.live_bytes + s.cached_bytes + s.metadata_bytes ||
        s.released_bytes > s.cached_bytes)
        wrong(h, "committed is not live + cached + metadata");
    if (s.committed_bytes > h.ceiling)
        wrong(h, "committed " + std::to_string(s.committed_bytes) + " of " + std::to_string(h.ceiling));
    if (h.hard) h.ceiling = std::max(h.hard, s.committed_bytes);
}

void Shadow::step()
{
    steps++;
    if (disarm_at_ && steps >= disarm_at_) {
        os_.fail_nth(0);
        disarm_at_ = 0;
    }
    failed_before_ = os_.failed;
    Heap &h = heaps_[below(heaps_.size())];
    if (!h.ctx) {
        open(h);
        return;
    }
    act(h);
    if (!h.ctx) return;
    if (++h.unchecked >= (h.hard ? (every_ + 3) / 4 : every_) || os_.failed != failed_before_) check_stats(h);
    if (!h.error.empty()) wrong(h, h.error);
    // All that is live, at times; small heaps often enough for what wrote over a block to be known.
    if (steps % (64 + h.blocks.size() * 4) == 0) check_all(h);
}

void Shadow::act(Heap &h)
{
    size_t r = below(2000);
    bool grow = h.blocks.size() < h.target && live_bytes() < LIVE_BOUND;
    if (h.habit != Habit::MIXED && below(h.habit == Habit::STEPS ? 100 : 400) == 0) trim(h);
    if (r < 4) {
        h.unchecked = every_;
        rare(h);
    } else if (h.blocks.empty() || r < (grow ? 1000u : 600u)) allocate(h);
    else if (r < (h.habit == Habit::MIXED ? 1700u : 1200u)) release(h, below(h.blocks.size()));
    else reallocate(h, below(h.blocks.size()));
}

void Shadow::verify()
{
    size_t group = 0;
    for (Heap &h : heaps_) {
        if (!h.ctx) continue;
        check_stats(h);
        if (!h.error.empty()) wrong(h, h.error);
        if (!hak_ctx_check(
                h.ctx,
                [](void *u, hak_error, const void *, const char *w) { *static_cast<std::string *>(u) = w; },
                &h.error))
            wrong(h, "hak_ctx_check: " + h.error);
        std::vector<hak_label_info> infos(HAK_LABELS_MAX + 1);
        int count = hak_labels_stats(h.ctx, infos.data(), infos.size());
        if (count != (int)h.labels.size()) wrong(h, "number of labels");
        for (int i = 0; i < count; i++) {
            const Sum &sum = h.sums[infos[(size_t)i].label];
            if (infos[(size_t)i].live_bytes != sum.bytes || infos[(size_t)i].live_blocks != sum.blocks)
                wrong(h, std::string("account of label '") + infos[(size_t)i].name + "'");
        }
        std::vector<hak_block> seen;
        hak_ctx_visit(
            h.ctx,
            [](void *user, const hak_block *block) {
                static_cast<std::vector<hak_block> *>(user)->push_back(*block);
                return true;
            },
            &seen);
        std::sort(seen.begin(), seen.end(), [](const hak_block &a, const hak_block &b) { return a.p < b.p; });
        std::vector<Block> blocks = h.blocks;
        std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.p < b.p; });
        if (seen.size() != h.blocks.size())
            wrong(h, "visited " + std::to_string(seen.size()) + " of " + std::to_string(h.blocks.size()));
        for (size_t i = 0; i < seen.size(); i++) {
            const Block &b = blocks[i];
            if (seen[i].p != b.p || seen[i].size != b.usable || seen[i].label != b.label)
                wrong(h, "visit differs from the shadow");
            check_contents(h, b, b.n);
            if (hak_ctx_of(space_, b.p) != h.ctx || hak_usable_size(h.ctx, b.p) != b.usable ||
                hak_block_size(h.ctx, b.p) != b.usable)
                wrong(h, "owner or usable size");
        }
        hak_stats s;
        s.size = sizeof s;
        hak_ctx_stats(h.ctx, &s);
        group += h.in_group ? s.committed_bytes : 0;
    }
    if (hak_quota_used(group_) != group || group > GROUP_LIMIT) wrong(heaps_[0], "the group's account");
}

void Shadow::finish()
{
    os_.fail_nth(0);
    verify();
    for (Heap &h : heaps_)
        if (h.ctx) close(h, below(2) == 0);
    if (hak_quota_used(group_) != 0) wrong(heaps_[0], "the group is not empty at the end");
    hak_space_delete(space_);
    space_ = nullptr;
    std::string report = os_.close();
    if (!report.empty()) throw std::logic_error(report);
}

} // namespace test
