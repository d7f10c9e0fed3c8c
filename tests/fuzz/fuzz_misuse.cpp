// Fuzz target: a program that misuses its heap, under the options that find it, in local and shared contexts.
// Each wrong call gets one report, of the right error and pointer; it changes no sum and no block.
#define HAK_NO_ATTRIBUTES // It asks for more than there can be, and writes behind blocks.
#include "input.h"

#include "heap.h"

#include <hakmem/guard.h>
#include <hakmem/trace.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

using namespace test;

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_misuse: %s\n", what);
    std::abort();
}

struct Block {
    char *p;
    size_t n, size; // asked for, and all that is the block's
    unsigned id;

    size_t usable() const
    {
        return std::max<size_t>(n, 1);
    }
    bool holds(const void *at) const
    {
        return (uintptr_t)at - (uintptr_t)p < size;
    }
};

constexpr size_t OTHERS = 8, MOST_BLOCKS = 400;

struct Run {
    Input input;
    FakeOs os;
    hak_space *space = nullptr;
    hak_ctx *ctx = nullptr, *other = nullptr;
    unsigned debug = 0;
    std::vector<Block> blocks, theirs;
    std::vector<char *> freed; // of ctx; the last one was freed last
    Errors errors;
    bool traced = true; // each report so far has its call as the last one of the trace
    unsigned next = 1;

    Run(const uint8_t *data, size_t size) : input(data, size)
    {
        SpaceOptions pages = space_options(os, 16 * MiB << input.below(3));
        pages.guard_slots = (size_t)4 << input.below(5);
        space = hak_space_new(&pages);
        make_contexts();
        while (input.left()) {
            step();
            operations.count++;
        }
        end();
    }

    void make_contexts()
    {
        const unsigned flags[] = {HAK_DEBUG_POISON, HAK_DEBUG_CANARY, HAK_DEBUG_QUARANTINE,
                                  HAK_DEBUG_RANDOM, HAK_DEBUG_TRACE,  HAK_DEBUG_GUARD};
        const uint8_t which = input.byte();
        debug = HAK_DEBUG_CHECK;
        for (size_t i = 0; i < 6; i++)
            debug |= which >> i & 1 ? flags[i] : 0;
        Options options = ctx_options();
        options.on_error = report;
        options.error_user = this;
        options.debug = debug;
        options.shared = which >> 6 & 1;
        options.packed_bytes = which >> 7 ? HAK_NONE : 0;
        options.guard_every = 1 + input.below(30);
        options.seed = 1 + input.below(1000);
        ctx = hak_ctx_new(space, &options);
        Options plain = ctx_options(&errors);
        other = hak_ctx_new(space, &plain);
        if (!ctx || !other) wrong("no context");
        for (unsigned i = 0; i < OTHERS; i++) {
            const size_t n = i == 0 ? 2 * MiB : some_size();
            theirs.push_back({(char *)hak_alloc(other, n), n, 0, i});
            theirs.back().size = hak_block_size(other, theirs.back().p);
            fill(theirs.back().p, n, i);
        }
    }

    static void report(void *user, hak_error error, const void *p, const char *what)
    {
        Run *run = (Run *)user;
        Errors::record(&run->errors, error, p, what);
        if (!(run->debug & HAK_DEBUG_TRACE)) return;
        const void *last = nullptr;
        hak_trace_visit(
            run->ctx, nullptr,
            [](void *to, const hak_trace_call *call) {
                *(const void **)to = call->p;
                return true;
            },
            &last);
        run->traced = last == p;
    }

    size_t some_size()
    {
        const size_t kind = input.below(100);
        return kind < 70   ? input.below(600)
               : kind < 90 ? input.below(33 * KiB)
               : kind < 98 ? input.below(300 * KiB)
                           : input.below(3 * MiB);
    }

    // ---- What must be ----------------------------------------------------------------------------------

    hak_stats stats() const
    {
        hak_stats s = {};
        s.size = sizeof s;
        if (hak_ctx_stats(ctx, &s) != 0) wrong("stats");
        return s;
    }

    // The reports since the last look are one, of p.
    void expect(std::initializer_list<hak_error> any_of, const void *p)
    {
        for (const Errors::Entry &e : errors.list)
            if (errors.list.size() != 1 || e.p != p ||
                std::find(any_of.begin(), any_of.end(), e.error) == any_of.end())
                std::fprintf(stderr, "%s: %p: %s, of %p\n", hak_error_name(e.error), e.p, e.what.c_str(), p);
        if (errors.list.empty()) wrong("no report");
        if (errors.list.size() != 1) wrong("more than one report");
        if (errors.list[0].p != p) wrong("the report is of another pointer");
        if (std::find(any_of.begin(), any_of.end(), errors.list[0].error) == any_of.end())
            wrong("another error");
        errors.list.clear();
    }
    void expect_none(const char *what)
    {
        if (errors.list.empty()) return;
        std::fprintf(stderr, "%s: %s\n", hak_error_name(errors.list[0].error), errors.list[0].what.c_str());
        wrong(what);
    }

    // A call that must be reported and do nothing.
    template <typename Call>
    void misuse(Call call, std::initializer_list<hak_error> any_of, const void *p)
    {
        const hak_stats before = stats();
        expect_none("a report of what was right");
        call();
        const hak_stats after = stats();
        if (before.live_blocks != after.live_blocks || before.live_bytes != after.live_bytes)
            wrong("sums changed");
        traced = traced || !(debug & HAK_DEBUG_TRACE);
        if (!traced) wrong("the trace ends with another call");
        expect(any_of, p);
    }

    void verify()
    {
        expect_none("a report of what was right");
        if (!hak_ctx_check(ctx, Errors::record, &errors)) {
            expect_none("hak_ctx_check");
            wrong("hak_ctx_check says nothing");
        }
        if (!hak_ctx_check(other, nullptr, nullptr)) wrong("the other context");
        for (const Block &b : blocks)
            if (!filled(b.p, b.n, b.id) || hak_usable_size(ctx, b.p) < b.n) wrong("contents");
        for (const Block &b : theirs)
            if (!filled(b.p, b.n, b.id)) wrong("contents of the other context");
        const size_t held = debug & HAK_DEBUG_QUARANTINE ? 256 : 0, live = stats().live_blocks;
        if (live < blocks.size() || live > blocks.size() + held) wrong("live blocks");
    }

    // ---- What is right ---------------------------------------------------------------------------------

    Block &any_block()
    {
        return blocks[input.below(blocks.size())];
    }

    void allocate()
    {
        if (blocks.size() >= MOST_BLOCKS) return release(any_block());
        Block b = {nullptr, some_size(), 0, next++};
        const size_t how = input.below(4);
        b.p = (char *)(how == 0   ? hak_calloc(ctx, 1, b.n)
                       : how == 1 ? hak_aligned_alloc(ctx, (size_t)1 << input.below(14), b.n)
                                  : hak_alloc(ctx, b.n));
        if (!b.p) wrong("no memory");
        take(b);
        blocks.push_back(b);
    }
    void take(Block &b)
    {
        b.size = hak_block_size(ctx, b.p);
        if (b.size < b.n) wrong("size");
        fill(b.p, b.n, b.id);
    }

    // p leaves the model.
    char *forget(const Block &b)
    {
        char *p = b.p;
        if (!filled(p, b.n, b.id)) wrong("contents");
        blocks[(size_t)(&b - blocks.data())] = blocks.back();
        blocks.pop_back();
        freed.push_back(p);
        if (freed.size() > 300) freed.erase(freed.begin(), freed.begin() + 100);
        return p;
    }
    void release(const Block &b)
    {
        const size_t how = input.below(3), n = b.n;
        char *p = forget(b);
        if (how == 0) hak_free_sized(ctx, p, n);
        else if (how == 1) hak_free_cs(ctx, p, 7);
        else hak_free(ctx, p);
    }

    void resize(Block &b)
    {
        const size_t n = some_size();
        char *p = (char *)(input.below(2) ? hak_realloc(ctx, b.p, n) : hak_realloc_sized(ctx, b.p, b.n, n));
        if (!p || !filled(p, std::min(b.n, n), b.id)) wrong("realloc");
        if (p != b.p) freed.push_back(b.p);
        b.p = p;
        b.n = n;
        take(b);
    }

    // ---- What is wrong ---------------------------------------------------------------------------------

    void misuse_pointer(void *p, std::initializer_list<hak_error> any_of)
    {
        const size_t how = input.below(6);
        misuse(
            [&] {
                if (how == 0) hak_free(ctx, p);
                else if (how == 1) hak_free_cs(ctx, p, 3);
                else if (how == 2) hak_free_sized(ctx, p, input.below(100));
                else if (how == 3 && hak_realloc(ctx, p, some_size())) wrong("realloc of a wrong pointer");
                else if (how == 4 && hak_realloc_sized(ctx, p, 8, some_size()))
                    wrong("realloc of a wrong pointer");
                else if (how == 5 && hak_realloc_cs(ctx, p, some_size(), 0, 5))
                    wrong("realloc of a wrong pointer");
            },
            any_of, p);
        if (hak_usable_size(ctx, p) != 0) wrong("the size of a wrong pointer");
    }

    // A pointer of which the model does not know what it is now, but for live blocks.
    void misuse_stray(char *p)
    {
        for (const Block &b : blocks)
            if (b.holds(p)) return p == b.p ? (void)0 : misuse_pointer(p, {HAK_E_POINTER});
        for (const Block &b : theirs)
            if (b.holds(p)) return misuse_pointer(p, {HAK_E_FOREIGN});
        misuse_pointer(p, {HAK_E_DOUBLE_FREE, HAK_E_POINTER, HAK_E_FOREIGN});
    }

    void free_twice(const Block &b)
    {
        const bool small = b.size <= MiB;
        release(b);
        if (input.below(4) == 0) hak_ctx_trim(ctx);
        if (small) misuse_pointer(freed.back(), {HAK_E_DOUBLE_FREE});
        else misuse_pointer(freed.back(), {HAK_E_DOUBLE_FREE, HAK_E_FOREIGN});
    }

    void free_foreign()
    {
        static char data[64];
        char local[64];
        const Block &b = theirs[input.below(theirs.size())];
        char *const pointers[] = {data + input.below(64),
                                  local + input.below(64),
                                  b.p,
                                  b.p + input.below(b.size),
                                  (char *)(uintptr_t)(8 + input.value() * 4096),
                                  (char *)~(uintptr_t)input.below(64)};
        misuse_pointer(pointers[input.below(6)], {HAK_E_FOREIGN});
    }

    void tell_wrong_size(Block &b)
    {
        const size_t told = input.below(2) ? b.n + 1 + input.below(100) : b.n ^ (size_t)1 << input.below(16);
        if (input.below(2)) {
            char *p = forget(b);
            hak_free_sized(ctx, p, told);
            return expect({HAK_E_SIZE}, p);
        }
        const size_t n = some_size();
        char *before = b.p, *p = (char *)hak_realloc_sized(ctx, before, told, n);
        expect({HAK_E_SIZE}, before);
        if (!p || !filled(p, std::min(b.n, n), b.id)) wrong("realloc with a wrong size");
        if (p != before) freed.push_back(before);
        b.p = p;
        b.n = n;
        take(b);
    }

    bool is_drawn(const void *p) const
    {
        hak_guard_report r = HAK_GUARD_REPORT_INIT;
        return hak_guard_explain(ctx, p, &r);
    }

    // One byte that is not the program's any more.
    void write_behind(Block &b)
    {
        const bool drawn = is_drawn(b.p);
        char *at = b.p + b.size;
        if (debug & HAK_DEBUG_CANARY && b.size > b.usable()) at -= 1 + input.below(b.size - b.usable());
        else if (drawn && (uintptr_t)at % PAGE) at += input.below(PAGE - (uintptr_t)at % PAGE);
        else if (drawn && (uintptr_t)b.p % PAGE)
            at = b.p - 1 - input.below(std::min<size_t>(64, (uintptr_t)b.p % PAGE));
        else return;
        const bool canary = at >= b.p && at < b.p + b.size;
        const char was = *at;
        *at = (char)(*at ^ (1 + (char)input.below(255)));
        if (!drawn && input.below(2)) {
            if (hak_ctx_check(ctx, Errors::record, &errors)) wrong("hak_ctx_check does not see it");
            expect({HAK_E_BOUNDS}, b.p);
        }
        if (input.below(2)) {
            char *p = forget(b);
            hak_free(ctx, p);
            return expect({HAK_E_BOUNDS}, p);
        }
        const size_t n = some_size();
        char *before = b.p, *p = (char *)hak_realloc(ctx, before, n);
        if (p == before && !canary) *at = was; // what lies beside a drawn block is looked at when it goes
        else expect({HAK_E_BOUNDS}, before);
        if (!p || !filled(p, std::min(b.n, n), b.id)) wrong("realloc of a block that was written behind");
        if (p != before) freed.push_back(before);
        b.p = p;
        b.n = n;
        take(b);
    }

    void write_after_free(const Block &b)
    {
        if (!(debug & HAK_DEBUG_QUARANTINE) || b.size > 32 * KiB || is_drawn(b.p)) return release(b);
        const size_t at = input.below(b.size);
        release(b);
        char *p = freed.back(), before = p[at];
        if (before != (char)0xDD) wrong("a held block is not filled");
        p[at] = (char)(before ^ (1 + (char)input.below(255)));
        if (hak_ctx_check(ctx, Errors::record, &errors)) wrong("hak_ctx_check does not see it");
        expect({HAK_E_USE_AFTER_FREE}, p);
        if (input.below(2)) {
            p[at] = before;
        } else {
            hak_ctx_flush(ctx);
            expect({HAK_E_USE_AFTER_FREE}, p);
        }
    }

    void ask_absurdly()
    {
        static const hak_error errors_of[] = {HAK_E_OVERFLOW, HAK_E_OVERFLOW, HAK_E_ALIGNMENT,
                                              HAK_E_ALIGNMENT};
        const size_t how = input.below(4);
        const hak_stats before = stats();
        void *p = how == 0   ? hak_calloc(ctx, SIZE_MAX / 2, 3 + input.below(9))
                  : how == 1 ? hak_alloc(ctx, SIZE_MAX - input.below(5000))
                  : how == 2 ? hak_aligned_alloc(ctx, 3 + 2 * input.below(1000), 10)
                             : hak_aligned_alloc(ctx, 0, 10);
        if (p || stats().live_blocks != before.live_blocks) wrong("an absurd call gets a block");
        if (errors.list.size() != 1 || errors.list[0].error != errors_of[how])
            wrong("an absurd call is not reported");
        errors.list.clear();
    }

    void step()
    {
        const size_t what = input.below(32);
        if (what < 8 || blocks.empty()) return allocate();
        Block &b = any_block();
        switch (what) {
        case 8:
        case 9:
        case 10:
        case 11:
            return release(b);
        case 12:
        case 13:
            return resize(b);
        case 14:
        case 15:
            return free_twice(b);
        case 16:
        case 17:
            return freed.empty() ? (void)0 : misuse_stray(freed[input.below(freed.size())]);
        case 18:
        case 19:
            return free_foreign();
        case 20:
        case 21:
            return b.size > 1 ? misuse_pointer(b.p + 1 + input.below(b.size - 1), {HAK_E_POINTER}) : (void)0;
        case 22:
            return misuse_stray(b.p + 16 * input.below(20000));
        case 23:
        case 24:
            return tell_wrong_size(b);
        case 25:
        case 26:
            return write_behind(b);
        case 27:
        case 28:
            return write_after_free(b);
        case 29:
            return ask_absurdly();
        case 30:
            return hak_ctx_tick(ctx, os.now += 600000000), void(input.below(4) ? 0 : hak_ctx_trim(ctx));
        default:
            return verify();
        }
    }

    void end()
    {
        verify();
        while (!blocks.empty())
            release(blocks.back());
        for (const Block &b : theirs)
            hak_free(other, b.p);
        hak_ctx_flush(ctx);
        verify_empty();
        hak_ctx_destroy(ctx);
        hak_ctx_destroy(other);
        hak_space_delete(space);
        expect_none("a report at the end");
        const std::string left = os.close();
        if (!left.empty()) wrong(left.c_str());
    }
    void verify_empty()
    {
        if (stats().live_blocks || stats().live_bytes) wrong("blocks are left");
        expect_none("a report at the end");
        if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("the empty context");
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Run run(data, size);
    return 0;
}
