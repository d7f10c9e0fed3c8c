/* For the programs' parts: what is measured, and on what. */
#ifndef COSTS_H
#define COSTS_H

#include <hakmem/hakmem.h>
#include <hakmem/profile.h>
#include <hakmem/tuning.h>

#include <stdio.h>

enum { BIG = (1 << 20) + 4096, MANY = 1 << 15 };

extern hak_space *space;
extern hak_ctx *ctx;
extern void *blocks[MANY];
extern size_t count; /* of blocks */
extern volatile size_t sink;

/* Ends the program unless ok. */
void must(bool ok);
/* A dump of callgrind named WHAT/SIZE/CALLS: what so many calls take. */
void measure(const char *what, size_t size, size_t calls, void (*call)(size_t i));
/* A space with a context, and their end. */
void begin(const hak_options *options);
void end(void);

/* Of several parts. */
void live_bytes(size_t i);
void stats(size_t i);
void limit(size_t i);
void tick(size_t i);
void peak_reset(size_t i);

void measure_owners(size_t n);
void measure_heap(size_t n, bool retired);
void measure_contexts(size_t n);
void measure_spaces(size_t n);
void measure_structs(size_t n);
void measure_labels(size_t n);
void measure_groups(size_t n);
void measure_full(size_t limit, bool packed, bool shared);
void measure_threads(size_t n, size_t own);
void measure_profile(size_t n);
void measure_policy(size_t n);
void measure_learner(size_t n);
void measure_guard(size_t n);
void measure_trace(size_t n);

#endif
