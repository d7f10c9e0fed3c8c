/* hakmem for wasm2c: memories and tables of guests that were compiled to C.
 *
 * INTRODUCTION
 *   Guests get their memories and tables from a host if the program links with the target that
 *   hakmem_add_wasm_wasm2c of the CMake package makes (see docs/guide/wasm.md); the target passes --wrap to
 *   the linker. wasm2c gives the functions that allocate these no argument of the embedder, so the tenant is
 *   the thread's current tenant.
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
 *   A growth over a limit is -1 for the guest. The heap limit counts the elements of tables. Make it a hard
 *   limit, because wasm2c can handle a refusal. Types of functions stay in malloc, once for a module.
 *   wasm2c 1.0.32 keeps one place to trap to for the whole process, so one thread at a time runs guests. That
 *   thread needs an alternate stack for signals, or a guest that recurses without end ends the process:
 *   wasm_rt_init gives one to the first thread that calls it, others call sigaltstack.
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

/* Sets the host from which threads without a current tenant get their memories. A memory of a tenant of
 * another host stays with that host, whatever tenant is current when it grows or is freed. Call this before
 * the first instance; the host must outlive all instances. signals: WASM_RT_MEMCHECK_SIGNAL_HANDLER as the
 * guests are compiled. Returns 0. Returns -1 and changes nothing if guests rely on signals and the host lacks
 * guards with slot_bytes + guard_bytes >= 8 GiB, or if the program is not linked as described above, so that
 * no limit would hold. Under a tenant of another host without such guards, a guest that relies on signals
 * gets no memory: it traps. */
HAK_API int hak_wasm_wasm2c_use(hak_wasm_host *host, bool signals);

/* Gives the guests of this thread the steps that the current tenant allows a call (hak_wasm_tenant_steps), or
 * any number if the tenant has no limit. Call this before each call of a guest, and before an instance is
 * made, because its start function takes steps. A step is a call of a function, a turn of a loop, or 64 bytes
 * or elements that an instruction fills or copies; functions of the host count none. Only guests whose C went
 * through hakmem_wasm2c_steps of the CMake package count steps: other guests know no limit and cannot be
 * ended. Without steps left the guest traps (WASM_RT_TRAP_EXHAUSTION). Cost: a few instructions; each step
 * costs a subtraction and a branch. */
HAK_API void hak_wasm_wasm2c_steps(void);
/* Returns whether a guest of this thread has trapped for want of steps since hak_wasm_wasm2c_steps. */
HAK_API bool hak_wasm_wasm2c_spent(void);

/* Traps unless the thread has this many bytes of stack left. Guests that rely on signals have no limit on
 * their depth but the end of the stack, which may come in the middle of a function of the host's that a
 * guest calls: the trap would leave the locks that the function holds, for ever. Such a function calls
 * this one first, with what it may need; those of hakmem's that guests call do so, with 64 KiB. Does
 * nothing for guests that do not rely on signals, because these count their depth. Cost: a store for each
 * page. */
HAK_API void hak_wasm_wasm2c_stack(size_t bytes);

typedef struct hak_wasm_wasm2c_snapshot hak_wasm_wasm2c_snapshot;
/* Takes a snapshot of the instance as it is now: of its struct, which holds globals and the marks of dropped
 * segments, and of the memories and tables that are members of the struct. `size` is the size of the struct.
 * The snapshot serves only this instance, because tables and the struct hold its address. The current tenant
 * is charged with everything but memories of another host, which are charged to that host's own tenant.
 * Returns NULL with the reason, a static text: no memory, over a limit, or the instance imports a memory or a
 * table, which another instance's reset would have to restore. Globals, functions and everything else that it
 * imports stay as they are. Cost: that of hak_wasm_image_take, a copy of struct and tables, and a pass over
 * all memories and tables of the process. */
HAK_API hak_wasm_wasm2c_snapshot *hak_wasm_wasm2c_take(void *instance, size_t size, const char **why);
/* Drops a snapshot. NULL is fine. */
HAK_API void hak_wasm_wasm2c_drop(hak_wasm_wasm2c_snapshot *snapshot);
/* Makes the instance what it was when the snapshot was taken, even after a trap; sizes of memories and tables
 * too. Returns 0, or -1 if the snapshot is another instance's or a limit is reached: the instance then has to
 * be freed. The start function does not run. Cost: as hak_wasm_memory_reset, and a copy of struct and
 * tables. */
HAK_API int hak_wasm_wasm2c_reset(void *instance, hak_wasm_wasm2c_snapshot *snapshot);
/* Does what hak_wasm_wasm2c_reset does, for an instance that waits for its next request: its memories rest
 * (hak_wasm_memory_rest), so that ticks give their pages back. The host calls hak_wasm_wasm2c_wake before it
 * calls the guest or writes to a memory of it; what is written without that may be lost. */
HAK_API int hak_wasm_wasm2c_rest(void *instance, hak_wasm_wasm2c_snapshot *snapshot);
/* Ends the rest of the snapshot's instance. NULL, and an instance that does not rest, are fine. */
HAK_API void hak_wasm_wasm2c_wake(hak_wasm_wasm2c_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
