/* What must happen in the running program, where Python's API may be used: the report before Python takes
 * itself apart, the signal of `python -m hakmem trim`, the callback of the soft limit. */
#ifndef HK_PY_PROGRAM_H
#define HK_PY_PROGRAM_H

#include "python.h"

#include <signal.h>

/* Python is awaited: its main thread gets a first call once it is initialized. Read by the hooks of RAW,
 * where a call passes soon after. */
extern bool hk_py_awaited HK_PY_HIDDEN;
void hk_py_await(void);
void hk_py_await_look(void);

/* Sent by `python -m hakmem trim`. */
#define HK_PY_TRIM_SIGNAL (SIGRTMIN + 8)

/* fn runs in the main thread with the GIL after the soft limit was crossed; NULL = nobody. A crossing while a
 * call is due makes no second one. */
HK_PY_API void hk_py_soft_call(int (*fn)(void *));
/* The hak_pressure_fn that does it. */
HK_PY_API void hk_py_pressure(hak_ctx *ctx, void *user, size_t committed, size_t limit);

#endif
