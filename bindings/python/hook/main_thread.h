/* What must happen in the running program, where Python's API may be used: the report before Python takes
 * itself apart, `python -m hakmem trim`, the callback of the soft limit. */
#ifndef HKP_PROGRAM_H
#define HKP_PROGRAM_H

#include "base/cpython.h"

/* The first call of the main thread, once Python is initialized: for hkp_await. */
int hkp_first_call(void);

/* fn runs in the main thread with the GIL after the soft limit was crossed; NULL = nobody. A crossing while a
 * call is due makes no second one. Who sets it takes it back before its Python ends. */
HKP_API void hkp_soft_call(int (*fn)(void *));
/* The hak_pressure_fn that does it. */
HKP_API void hkp_pressure(hak_ctx *ctx, void *user, size_t committed, size_t limit);

#endif
