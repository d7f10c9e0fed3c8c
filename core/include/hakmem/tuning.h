/* hakmem, the numbers behind hak_mode and hak_workload: for those who measure, and for policies.
 *
 * A host says what runs in a context (hak_options.workload) and how much memory may be spent for speed (mode
 * in hak_options and hak_space_options); every number below follows from these two. A host that has measured
 * better numbers gives them in hak_options.tuning and hak_space_options.tuning:
 *
 *     hak_tuning tuning = HAK_TUNING_INIT;
 *     tuning.big_cache = 4 << 20;
 *     options.tuning = &tuning;      // copied by hak_ctx_new; other numbers stay those of mode and workload
 *
 * In each field 0 means the value for the mode and HAK_NONE means none at all, where a field allows that. The
 * table of all values is in docs/guide/modes.md. If a field is out of range, hak_ctx_new and hak_space_new
 * return NULL; hak_options_error and hak_space_options_error say which field.
 *
 * STABILITY  Experimental: a number goes with the mechanism that it sets. Those of hak_mode stay.
 *
 * Threads: a struct may be read by any number of calls at once. Since 0.1. */
#ifndef HAKMEM_TUNING_H
#define HAKMEM_TUNING_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The four values in a comment are the defaults in the modes balanced, minimal, fast and lean, in this order;
 * learning and research have those of balanced. "counted": the same four with HAK_WORKLOAD_COUNTED, where
 * they differ. Row: the row of the benchmarks (docs/measurements/core.md) that the number moves most. A
 * context reads the first group, a space the second one; a space that hak_ctx_new makes for one context takes
 * its group from that context's tuning. */
struct hak_tuning {
    size_t size; /* sizeof(hak_tuning), by HAK_TUNING_INIT; other sizes as for options */

    /* Contexts. */

    /* Blocks that a size class keeps at hand once it swings between empty and full; 32 at first, fewer above
     * 256 bytes. In local contexts a class of blocks up to 1 KiB that goes on taking slabs keeps up to four
     * times as many: at most 128 blocks, and at most 16 KiB. These additional blocks of all classes together
     * are at most a 32nd of the live bytes, and none under a limit below 64 MiB, with a debug option or with
     * a profile. 2 to 128; HAK_NONE. 32, none, 128, 32; counted 128, none, 128, 128. Row: xmalloc 1to1. */
    size_t magazine;
    /* Bytes of the largest block that a size class keeps at hand; slabs and runs of larger blocks go back to
     * the space as soon as they are empty. 8 to 1 MiB; HAK_NONE. 1 MiB, none, 1 MiB, 4 KiB; counted 4 KiB,
     * none, 1 MiB, 4 KiB. Row: mid slots256. */
    size_t magazine_most;
    /* Most bytes in which small blocks of all sizes lie side by side (packed); a size class gets slabs of its
     * own when its blocks would fill a slab. Each thread's heap in a shared context packs a sixteenth of
     * this. Up to 16 MiB; HAK_NONE. 2 MiB, none, 256 KiB, 2 MiB. Row: ctx blocks1000. */
    size_t packed_bytes;
    /* Where the first block of each slab begins, modulo 64, for blocks of up to 1 KiB. With 48, objects
     * behind a header of 16 bytes begin on cache lines. Not 0: nothing is packed, and hak_aligned_alloc above
     * 16 takes 16 KiB. 0, 16, 32 or 48. 0 in each mode. Row: none of the core; Python programs
     * (docs/measurements/python.md). */
    size_t first_offset;
    /* Bytes of freed big blocks (those with mappings of their own) that are kept. The cache holds a quarter
     * of this, or of what is live if that is more, and shrinks before the heap grows. If the program asks
     * again for sizes that the cache gave up, the cache grows: to 64 MiB, a quarter of what is live, or
     * big_cache, whichever is most. The growth ends when a tick finds such blocks unused for too long
     * (purge_ns), or when the space needs more than ever. Any; HAK_NONE. 16 MiB, none, 256 MiB, 2 MiB. Row:
     * mixed held4. */
    size_t big_cache;
    /* Most units of 16 KiB that a growing context sets aside in one step, for itself alone. 2 to 64;
     * HAK_NONE. 16, none, 64, none. Row: ctx blocks1000. */
    size_t units_ahead;
    /* Number of slabs of a size class after which the pages of each further slab are asked for in one call,
     * before they are touched. 1 to 254; HAK_NONE = each page is a fault. 16, none, 2, 16. Row: battle. */
    size_t populate_from;

    /* Spaces. */

    /* Recycled pages that a space keeps resident: retained_bytes, or retained_percent of what is in use if
     * that is more. If pages above this bound went back and were needed again, the bound rises, by a half at
     * most. Pages above the bound go back to the OS at once. Any; HAK_NONE. 32 MiB, none, 256 MiB, 4 MiB.
     * Row: soak steady. */
    size_t retained_bytes;
    /* 1 to 1000; HAK_NONE. 50, none, 100, none. Row: soak steady. */
    size_t retained_percent;
    /* Period of hak_ctx_tick in nanoseconds: memory that is unused for one or two periods goes back to the
     * OS. Where recurring work wanted such memory again, the wait grows, up to 65 periods. A host that ticks
     * seldom makes each period up to twice as long. 1 on. 1 s, 1 s, 10 s, 1 s. Row: soak steady. */
    uint64_t purge_ns;
    /* Committed bytes of a context from which its new chunks and big blocks are advised to be huge pages. New
     * chunks (2 MiB) are so advised already from a quarter of it on, if the last two chunks of the space took
     * less than 8 ms together to fill. 1 on; HAK_NONE = never. 64 MiB, none, 1 MiB, none. Row: cold_big. */
    size_t huge_from;
    /* 1: at a new peak, each fresh page purges a retained one; the space keeps half of the retained pages
     * that are allowed at first, and more once they are wanted again. 1; HAK_NONE. None, none, none, 1. Row:
     * mixed held4. */
    size_t retained_yields;

    /* Contexts again. */

    /* Bytes that the context is expected to commit, as an earlier run or a learner knows. From its first
     * chunk on, the context takes pages as if it had that much already (see huge_from). 1 on; HAK_NONE =
     * nothing is known. None in each mode. Row: none of the core; Lua programs whose heap grows to hundreds
     * of MB. */
    size_t expected_bytes;
    /* Contexts with HAK_DEBUG_GUARD: on average one in this many blocks of up to 32 KiB lies before a guard
     * page. 1 to 2^30. 5000 in each mode. Row: none; docs/guide/misuse.md. */
    size_t guard_every;
    /* Spaces: most such blocks at once, of all contexts. Each takes 36 KiB of address space, pages only while
     * it is live, and 0.5 KiB of a table. 1 to 65536; a space that is given this number needs protect in its
     * OS table. 64 in each mode. Row: none. */
    size_t guard_slots;
    /* Sizes that are never packed, bit i for blocks of 8 i + 8 bytes. Their classes get slabs of 16 KiB from
     * the first block on; other classes get them only once their packed blocks would fill one. Read when a
     * context is made, if it packs at all; hak_ctx_tuning shows those that have slabs now. Any; HAK_NONE.
     * None in each mode. Row: none; contexts that live as long as a request
     * (docs/measurements/learning.md). */
    size_t slab_sizes;
};
#define HAK_TUNING_INIT                                                                                      \
    {                                                                                                        \
        sizeof(hak_tuning), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                   \
    }
/* Does the same as the macro, for languages without macros. size: sizeof *tuning, as the caller knows it.
 * Cost: constant. [any thread] Since 0.1. */
HAK_API void hak_tuning_init(hak_tuning *tuning, size_t size);
/* Replaces each 0 by the number that mode and workload give; the caller sets tuning->size, and no field
 * behind it is written. For hosts that show the numbers, or start from them. Returns 0; -1 if the size, the
 * mode or the workload is impossible, and then nothing changed. Cost: constant. [any thread] Since 0.1. */
HAK_API int hak_tuning_complete(hak_tuning *tuning, hak_mode mode, hak_workload workload);

#ifdef __cplusplus
}
#endif
#endif
