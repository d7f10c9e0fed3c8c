/* hakmem for wasm2c: memories and tables of guests that were compiled to C.
 *
 * INTRODUCTION
 *   Linked with the target that hakmem_add_wasm_wasm2c of the CMake package makes (see docs/guide/wasm.md),
 *   which passes --wrap to the linker, guests get their memories and tables from a host. wasm2c gives the
 *   functions that allocate these no argument of the embedder's, so the tenant is the thread's current one.
 *
 *       static Z_guest_instance_t guest;             // zero: after a trap in the middle it can be freed
 *       hak_wasm_wasm2c_use(host, WASM_RT_MEMCHECK_SIGNAL_HANDLER);
 *       wasm_rt_init();
 *       hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_INSTANCE);
 *       if (wasm_rt_impl_try() == 0)                 // over a limit it traps
 *           Z_guest_instantiate(&guest);
 *       hak_wasm_wasm2c_snapshot *fresh = hak_wasm_wasm2c_take(&guest, sizeof guest, &why);
 *       hak_wasm_leave(before);
 *       ...                                          // a request
 *       hak_wasm_wasm2c_reset(&guest, fresh);
 *
 *   A growth over a limit is -1 for the guest. The heap limit counts the elements of tables: let it be a hard
 *   one, since wasm2c takes a refusal. Types of functions stay in malloc, once for a module.
 *
 * STABILITY  Experimental: wabt's own structures decide what it can do.
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

/* From where threads without a current tenant get their memories. What a tenant of another host has stays
 * with that one, whatever is current when it grows or is freed. Before the first instance; the host must
 * outlive all of them. signals: WASM_RT_MEMCHECK_SIGNAL_HANDLER as the guests are compiled. 0 = ok; -1 =
 * guests that rely on signals need a host with guards and slot_bytes + guard_bytes >= 8 GiB, or the program
 * is not linked as described above, so that no limit would hold; nothing changed.
 * Under a tenant of another host, which has none of these, such a guest gets no memory: it traps. */
HAK_API int hak_wasm_wasm2c_use(hak_wasm_host *host, bool signals);

/* From now on the guests of this thread have as many steps as the current tenant allows a call
 * (hak_wasm_tenant_steps), or as they like: before each call of a guest, and before an instance is made,
 * whose start function takes steps. A step is a call of a function, a turn of a loop, or 64 bytes or elements
 * that an instruction fills or copies; functions of the host count none. Only guests whose C went through
 * hakmem_wasm2c_steps of the CMake package count: others know no limit, and cannot be ended. At the end it
 * traps (WASM_RT_TRAP_EXHAUSTION). Cost: nothing much; each step costs a subtraction and a branch. */
HAK_API void hak_wasm_wasm2c_steps(void);
/* Whether a guest of this thread has trapped because it had no steps left, since hak_wasm_wasm2c_steps. */
HAK_API bool hak_wasm_wasm2c_spent(void);

typedef struct hak_wasm_wasm2c_snapshot hak_wasm_wasm2c_snapshot;
/* The instance as it is now: its struct, which holds globals and the marks of dropped segments, and the
 * memories and tables that are members of it. `size` is that of the struct. For this instance only, as
 * tables and the struct hold its address. The current tenant pays for all, but for memories of another
 * host that host's own. NULL with the reason, which is static: no memory, over a limit, or the instance
 * imports a memory or a table, which another's reset would have to restore. Globals, functions and
 * whatever else it imports stay as they are. Cost: that of hak_wasm_image_take, a copy of struct and
 * tables, and a pass over all memories and tables of the process. */
HAK_API hak_wasm_wasm2c_snapshot *hak_wasm_wasm2c_take(void *instance, size_t size, const char **why);
/* NULL is fine. */
HAK_API void hak_wasm_wasm2c_drop(hak_wasm_wasm2c_snapshot *snapshot);
/* The instance as it was when the snapshot was taken, also after a trap; sizes of memories and tables too. -1
 * = the snapshot is another instance's, or over a limit: the instance has to be freed then. The start
 * function is not run. Cost: as hak_wasm_memory_reset, and a copy of struct and tables. */
HAK_API int hak_wasm_wasm2c_reset(void *instance, hak_wasm_wasm2c_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
