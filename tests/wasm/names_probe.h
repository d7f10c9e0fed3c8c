/* What names_probe.c has seen and done. */
#ifndef NAMES_PROBE_H
#define NAMES_PROBE_H

#include <hakmem/wasm.h>

#ifdef __cplusplus
extern "C" {
#endif
extern hak_wasm_tenant *probe_tenant; /* that is looked at; NULL = none */
extern unsigned probe_calls, probe_held;
/* Gets a heap limit, as by another thread, before its lock is taken the next time; NULL = none. */
extern hak_wasm_tenant *probe_limited;
extern unsigned probe_limits;
/* Profiles that were looked up in a context that is not probe_tenant's. */
extern unsigned probe_stale;
#ifdef __cplusplus
}
#endif

#endif
