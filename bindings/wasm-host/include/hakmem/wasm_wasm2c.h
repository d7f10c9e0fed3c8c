/* hakmem for wasm2c: linear memories of guests that were compiled to C.
 *
 * INTRODUCTION
 *   Linked with the target hakmem_wasm_wasm2c, which passes --wrap to the linker, guests get their memories
 * from a host. wasm2c gives its memory functions no argument of the embedder's, so the tenant is the thread's
 * current one.
 *
 *       hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER);
 *       wasm_rt_init();
 *       hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
 *       if (wasm_rt_impl_try() == 0)                 // over a limit it traps
 *           Z_guest_instantiate(&guest);
 *       hak_wasm_leave(before);
 *
 *   Tables and types stay in malloc, where wasm2c has them. Globals are members of the instance: copy the
 * struct to bring them back.
 *
 * CONVENTIONS
 *   Those of hakmem/wasm.h. Since 0.1 for everything in this file.
 */
#ifndef HAKMEM_WASM_WASM2C_H
#define HAKMEM_WASM_WASM2C_H

#include <hakmem/wasm.h>
#include <wasm-rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From where threads without a current tenant get their memories. Before the first instance; the host must
 * outlive all of them. signals: WASM_RT_MEMCHECK_SIGNAL_HANDLER as the guests are compiled. 0 = ok; -1 =
 * guests that rely on signals need a host with guards and slot_bytes + guard_bytes >= 8 GiB, nothing changed.
 */
HAK_API int hak_wasm_wasm2c_use(hak_wasm_host *host, bool signals);

/* hak_wasm_memory_reset for a guest's memory, its number of pages included. */
HAK_API int hak_wasm_wasm2c_reset(hak_wasm_host *host, wasm_rt_memory_t *memory, hak_wasm_image *image);

#ifdef __cplusplus
}
#endif
#endif
