// What the tests of the machines share: runs in which a page is refused, and runs with little memory.
#pragma once

#include "heap.h"

#include <algorithm>
#include <string>

namespace test
{

// How a run in little memory ended: there was no machine, the program was told of it, or it ran.
enum class Ran { None, Refused, Good };

// run(space) once for each request of a page, which is refused, and until there are no more requests.
template <class Run>
void refuse_each_page(Run run, size_t reserve = 16 * MiB)
{
    uint64_t n = 1;
    bool good = false;
    for (bool refused = true; refused; n++) {
        CAPTURE(n);
        FakeOs os;
        os.fail_nth(n);
        SpaceOptions options = space_options(os, reserve);
        hak_space *space = hak_space_new(&options);
        good = space && run(space) == Ran::Good;
        refused = os.failed > 0;
        hak_space_delete(space);
        CHECK(os.close() == "");
    }
    CHECK(n > 5);
    CHECK(good);
}

// run(space, limit) for every limit, and all three ends are met.
template <class Run>
void sweep_limits(size_t step, size_t last, Run run)
{
    TestSpace t;
    int ends[3] = {};
    for (size_t limit = step; limit <= last; limit += step) {
        CAPTURE(limit);
        ends[static_cast<int>(run(t.space, limit))]++;
    }
    CHECK(ends[0] > 0);
    CHECK(ends[1] > 0);
    CHECK(ends[2] > 0);
}

// The row of a label that there is.
inline hak_label_info label_named(const hak_ctx *ctx, const char *name)
{
    hak_label_info all[HAK_LABELS_MAX + 1];
    int count = hak_labels_stats(ctx, all, HAK_LABELS_MAX + 1);
    for (int i = 1; i < count; i++)
        if (!strcmp(all[i].name, name)) return all[i];
    FAIL("no label " << name);
    return {};
}

// ---- What holds for every machine -------------------------------------------------------------------------
//
// A machine M(space, limit = 0, labels = true) has `heap`, the context or NULL; there(), whether it may run
// programs; run(source), what the program gives, or its error; WORK, a program, and GIVES, what that gives;
// refused(result), whether that is what a program is told where there is no memory; lost(), whether it can
// only be dropped now.

template <class M>
Ran work(M &m)
{
    if (!m.there()) return Ran::None;
    const std::string result = m.run(M::WORK);
    if (result == M::GIVES) return Ran::Good;
    CAPTURE(result);
    CHECK(m.refused(result));
    return Ran::Refused;
}

template <class M>
void test_without_labels()
{
    TestSpace t;
    M m(t.space, 0, false);
    CHECK(m.run(M::WORK) == M::GIVES);
    hak_label_info other;
    CHECK(hak_label_stats(m.heap, 0, &other) == 0);
    CHECK(other.live_blocks == stats_of(m.heap).live_blocks);
}

// Limits up to last; first: what a heap may have before it has a limit.
template <class M>
void test_little_memory(size_t step, size_t last, size_t first)
{
    sweep_limits(step, last, [first](hak_space *space, size_t limit) {
        M m(space, limit);
        const Ran ran = work(m);
        if (m.there()) CHECK(committed_of(m.heap) <= limit);
        if (m.heap) {
            CHECK(committed_of(m.heap) <= std::max(limit, first));
            require_sound(m.heap);
        }
        return ran;
    });
}

template <class M>
void test_refused_pages()
{
    refuse_each_page([](hak_space *space) {
        M m(space);
        const Ran ran = work(m);
        if (ran == Ran::Refused && !m.lost()) CHECK(work(m) == Ran::Good);
        if (m.heap) require_sound(m.heap);
        return ran;
    });
}

// keep: a program that keeps something, and gives it; ask: one that gives it again.
template <class M>
void test_many_machines(const char *keep, const char *ask, const char *kept, int count)
{
    TestSpace t;
    M first(t.space);
    CHECK(first.run(keep) == kept);
    for (int i = 0; i < count; i++) {
        M m(t.space);
        CHECK(m.run(M::WORK) == M::GIVES);
    }
    CHECK(first.run(ask) == kept);
}

} // namespace test
