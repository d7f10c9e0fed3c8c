// What the tests of the machines share: runs in which a page is refused, and runs with little memory.
#pragma once

#include "heap.h"

namespace test
{

// How a run in little memory ended: there was no machine, the program was told of it, or it ran.
enum class Ran { None, Refused, Good };

// run(space) once for each request of a page, which is refused, and until there are no more requests.
template <class Run> void refuse_each_page(Run run, size_t reserve = 16 * MiB)
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
template <class Run> void sweep_limits(size_t step, size_t last, Run run)
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

} // namespace test
