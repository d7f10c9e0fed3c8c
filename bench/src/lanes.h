/* The threads of a row: pinned to the CPUs of the process in turn, and measured together. */
#ifndef BENCH_LANES_H
#define BENCH_LANES_H

#include "harness.h"

typedef void lane_fn(void *shared, size_t lane);

/* Runs `prepare` (may be NULL) and then, from a common start on, `work` in `count` threads; the timer covers
 * `work` of all, and puts its figures for `ops` operations. */
void lanes_run(size_t count, lane_fn *prepare, lane_fn *work, void *shared, uint64_t ops);
/* A thread of a lane, on its CPU, that calls fn and ends. */
void lane_thread(lane_fn *fn, void *shared, size_t at);
/* The same, and the allocator is not told that the thread ends. */
void lane_thread_untold(lane_fn *fn, void *shared, size_t at);

/* Batches of blocks on their way from one thread to another. A pipe takes as many as there are. */
enum { BATCH_MOST = 4096, PIPE_MOST = 64 };
typedef struct bench_batch {
    size_t used;
    bench_slot blocks[BATCH_MOST];
} bench_batch;
typedef struct pipe pipe;
pipe *pipe_new(void);
void pipe_put(pipe *p, bench_batch *b);
/* Waits for one. */
bench_batch *pipe_get(pipe *p);

#endif
