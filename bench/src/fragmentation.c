/* fragmentation: in each of eight phases the heap is filled up to 48 MiB of live bytes with blocks of the
 * phase's sizes, then a random 90 % of all blocks are freed, then, in the case trim, the
 * allocator gives memory back. The sizes move up by doubling, then spread over the whole range, then return
 * to the first. */
#include "harness.h"
#include BENCH_ADAPTER

enum { PHASES = 8, SLOTS = 3 << 20 };

static const struct {
    size_t lo, hi;
} sizes[PHASES] = {{16, 1024},   {32, 2048},   {64, 4096},  {128, 8192},
                   {256, 16384}, {512, 32768}, {16, 32768}, {16, 1024}};

static void shuffle(bench_slot *slots, size_t count, bench_rng *r)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = rng_index(rng_next(r), i);
        bench_slot t = slots[i - 1];
        slots[i - 1] = slots[j];
        slots[j] = t;
    }
}

static void fragmentation(const bench_case *c, const bench_settings *s)
{
    (void)s;
    size_t live_target = c->a * MIB, live = 0, count = 0, ops = 0;
    bench_slot *slots = bench_table(SLOTS * sizeof *slots);
    double before = (double)resident_bytes(), filled[PHASES], trough[PHASES], worst = 0, lowest = 0;
    uint64_t spent = 0;
    bench_rng r = 5;
    ba_init();
    for (int phase = 0; phase < PHASES; phase++) {
        uint64_t from = cpu_ns();
        while (live < live_target && count < SLOTS) {
            size_t n = rng_range(rng_next(&r), sizes[phase].lo, sizes[phase].hi);
            char *p = ba_alloc(n);
            for (size_t at = 0; at < n; at += 4096)
                p[at] = 1;
            p[n - 1] = 1;
            slots[count++] = slot_make(p, n);
            live += n;
            ops++;
        }
        spent += cpu_ns() - from;
        filled[phase] = ((double)resident_bytes() - before) / (double)MIB;
        shuffle(slots, count, &r);
        size_t keep = count / 10;
        from = cpu_ns();
        for (size_t i = keep; i < count; i++) {
            ba_free(slot_ptr(slots[i]), slot_size(slots[i]));
            live -= slot_size(slots[i]);
        }
        ops += count - keep;
        count = keep;
        if (c->b) ba_trim();
        spent += cpu_ns() - from;
        trough[phase] = ((double)resident_bytes() - before) / (double)MIB;
        if (filled[phase] > worst) worst = filled[phase];
        lowest += trough[phase] / PHASES;
    }
    for (size_t i = 0; i < count; i++)
        ba_free(slot_ptr(slots[i]), slot_size(slots[i]));
    ba_trim();
    put("cpu_ns", (double)spent / (double)ops);
    put("peak_ratio", worst / (double)c->a);
    put("trough_mib", lowest);
    put("end_mib", ((double)resident_bytes() - before) / (double)MIB);
    put_series("filled_mib", filled, PHASES);
    put_series("trough_series_mib", trough, PHASES);
}

static const bench_case cases[] = {{"live48M", 48, 0, false}, {"trim", 48, 1, false}, {NULL, 0, 0, false}};

const bench_row rows_fragmentation[] = {{"fragmentation", cases, fragmentation}, {NULL, NULL, NULL}};
