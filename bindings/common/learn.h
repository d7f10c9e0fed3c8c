/* What the options of the bindings say of learning: begin with the policy in a file, learn from one context,
 * write the file at the end, with the decisions as comments. What is told is kept in pages of its own, for
 * malloc may be served by the context. */
#ifndef HKC_LEARN_H
#define HKC_LEARN_H

#include "common/memory.h"

#include <hakmem/learn.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hkc_learning {
    hak_learner *learner; /* NULL = not begun, or ended */
    hak_ctx *ctx;
    char *text; /* the decisions, a line each; ends with 0 */
    size_t used;
    uint64_t began_ns;
    pid_t process;
} hkc_learning;

/* *policy becomes what the file says, or stays as it is where there is no such file but may be one. false =
 * `message` says what is wrong. */
bool hkc_learn_load(const char *file, hak_policy **policy, char *message, size_t size);
/* The learner's time is the CPU time of the process, and what pages and calls cost is measured. windows: they
 * are told, too. false = no memory, or the context has a learner. */
bool hkc_learn_start(hkc_learning *l, hak_ctx *ctx, const hkc_memory *memory, bool windows);
/* Once, when the process ends: what was learned so far. In a process that was forked since, nothing. file:
 * NULL = none, the decisions go to descriptor `fd`, if that is not negative. 0, or errno. */
int hkc_learn_finish(hkc_learning *l, const char *file, int fd);

#endif
