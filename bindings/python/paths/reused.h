/* Objects that CPython takes from its free lists: from 3.13 on it tells a tracer of each object that begins
 * (PyRefTracer_SetTracer), and such a one gets the line, and in a profile the stack, that asks for it now.
 * Before 3.13 nobody is told: what CPython calls for tracemalloc (_PyTraceMalloc_NewReference) is a function
 * inside of it, with tables of its own. */
#ifndef HKP_REUSED_H
#define HKP_REUSED_H

#include "base/core.h"

typedef enum hkp_reused { HKP_REUSED_DEFAULT, HKP_REUSED_ON, HKP_REUSED_OFF } hkp_reused;

/* What the user asked for. Before hkp_reused_follow. serves: there will be lines or a profile. Returns why it cannot be
 * had; NULL = it can. */
const char *hkp_reused_wish(hkp_reused wish, bool serves);
/* Begins or ends to follow such objects, as what runs now needs it. profile: a profile runs, exact: each block
 * is in it. With the GIL held, and Python initialized. */
void hkp_reused_follow(bool profile, bool exact);
/* "followed", or why they are not, in some words. [any thread] */
const char *hkp_reused_state(void);

/* The block that the hooks of a profile made or resized last in this thread, where CPython keeps objects; NULL = the
 * tracer was told of its object. CPython tells of each object right after it has the block, new ones too. */
extern _Thread_local const void *hkp_reused_fresh HKP_NEAR;

#endif
