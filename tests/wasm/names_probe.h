/* What names_probe.c has seen. */
#ifndef NAMES_PROBE_H
#define NAMES_PROBE_H

#include <hakmem/wasm.h>

#ifdef __cplusplus
extern "C" {
#endif
extern hak_wasm_tenant *probe_tenant; /* that is looked at; NULL = none */
extern unsigned probe_calls, probe_held;
#ifdef __cplusplus
}
#endif

#endif
