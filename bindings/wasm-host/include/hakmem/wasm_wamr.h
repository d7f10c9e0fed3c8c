/* hakmem for WAMR, the WebAssembly Micro Runtime.
 *
 * INTRODUCTION
 *   All memory of the runtime and all linear memories come from a host; the wrappers below set the tenant and
 *   the label around the calls of WAMR that allocate.
 *
 *       RuntimeInitArgs args = {0};
 *       hak_wasm_wamr_args(host, &args);
 *       wasm_runtime_full_init(&args);
 *       wasm_module_t module = hak_wasm_wamr_load(tenant, bytes, size, error, sizeof error);
 *       hak_wasm_wamr *guest = hak_wasm_wamr_open(tenant, module, 65536, error, sizeof error);
 *       hak_wasm_wamr_call(guest, "_initialize", 0, NULL);
 *       hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
 *       ...                                            // for each request:
 *       hak_wasm_wamr_call(guest, "handle", 1, argv);
 *       hak_wasm_wamr_reset(guest, fresh);
 *
 *   WAMR must be built with WAMR_DISABLE_HW_BOUND_CHECK=1, WAMR_BUILD_ALLOC_WITH_USER_DATA=1,
 *   WAMR_BUILD_LIBC_WASI=1, WAMR_BUILD_SHRUNK_MEMORY=0 and the definition WASM_MEM_ALLOC_WITH_USAGE=1,
 *   without multiple modules and memories, shared memories and garbage collection; other settings do not
 *   compile. A WAMR with WAMR_BUILD_AOT also serves modules that were compiled ahead of time; with
 *   WAMR_BUILD_DUMP_CALL_STACK profiles have their functions, too. The adapter reads structures of WAMR whose
 *   layout depends on all settings. So hakmem_add_wasm_wamr of the CMake package compiles the adapter with
 *   the host's WAMR: see docs/guide/wasm.md. Tried with WAMR of the package wamrx-sys 0.3.0.
 *
 * STABILITY  Experimental: WAMR's own structures decide what it can do.
 *
 * CONVENTIONS
 *   Those of hakmem/wasm.h. A guest belongs to one thread at a time. WAMR has one allocator for the process,
 *   so it serves one host at a time. Each wrapper costs what WAMR's function costs, and some steps to set the
 *   tenant and the label. hak_wasm_wamr_take and _reset copy what the guest's memory, globals and tables
 *   hold; a reset leaves out pages that the guest did not touch. Since 0.1 for everything in this file.
 */
#ifndef HAKMEM_WASM_WAMR_H
#define HAKMEM_WASM_WAMR_H

#include <hakmem/wasm.h>
#include <wasm_export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets mem_alloc_type and mem_alloc_option so that WAMR takes all memory from the host, which must outlive
 * wasm_runtime_destroy. */
HAK_API void hak_wasm_wamr_args(hak_wasm_host *host, RuntimeInitArgs *args);

/* Loads a module for a tenant, by wasm_runtime_load, under label LOAD. Machine code that WAMR maps for a module
 * that was compiled ahead of time is charged as linear bytes (hak_wasm_charge) until wasm_runtime_unload, where
 * WAMR is a static library, as with hak_wasm_tenant_steps. WAMR changes `bytes`, which must stay
 * until wasm_runtime_unload; that needs no wrapper. On an error returns NULL with a text in `error`, which
 * may be NULL. It is an error if WAMR does not take its memory from the tenant's host (hak_wasm_wamr_args),
 * because no limit would hold. */
HAK_API wasm_module_t hak_wasm_wamr_load(hak_wasm_tenant *tenant, uint8_t *bytes, uint32_t size, char *error,
                                         uint32_t error_size);

/* Limits on steps (hak_wasm_tenant_steps) need WAMR_BUILD_INSTRUCTION_METERING=1, which costs the interpreter
 * one comparison for each instruction, and a program linked with --wrap=wasm_exec_env_create, which
 * hakmem_add_wasm_wamr arranges for WAMR as a static library. A step is an instruction. An instruction that
 * fills or copies a range is also one step, however long the range: hak_wasm_module_limits.ranges = HAK_NONE
 * keeps guests with such instructions out. A limit is at most 2^31 - 1 for each call, and again for each
 * function that the host calls while the guest waits for the host. Machine code counts no steps, and is
 * refused under such a limit. */

typedef struct hak_wasm_wamr hak_wasm_wamr;
/* Makes an instance with an execution environment. Returns NULL with a text in `error` when the tenant may
 * have no more instances, when the module wants 65,536 pages (WAMR asks for 0 bytes then) or more than a slot
 * has, or when there is no memory. Growth ends at 65,535 pages. */
HAK_API hak_wasm_wamr *hak_wasm_wamr_open(hak_wasm_tenant *tenant, wasm_module_t module, uint32_t stack_size,
                                          char *error, uint32_t error_size);
/* Closes a guest. NULL is fine. */
HAK_API void hak_wasm_wamr_close(hak_wasm_wamr *guest);
/* Calls an exported function; argv as in wasm_runtime_call_wasm. argc: the number of cells of argv, which
 * serve arguments and results and may be more than the arguments need. With argc 0, argv still has one cell;
 * argv is NULL if there are neither arguments nor results. The guest's module decides what its function takes
 * and returns: a function that needs more cells than argv has is refused. Allocations of system interface
 * calls are under label WASI. Returns false if there is no such function, or after a trap: see
 * hak_wasm_wamr_exception. */
HAK_API bool hak_wasm_wamr_call(hak_wasm_wamr *guest, const char *function, uint32_t argc, uint32_t *argv);
/* Returns the error of the last call; NULL = it did not fail. */
HAK_API const char *hak_wasm_wamr_exception(hak_wasm_wamr *guest);

/* Return WAMR's own objects, for WAMR's functions. They change when hak_wasm_wamr_reset returns 1, and so do
 * function handles. */
HAK_API wasm_module_inst_t hak_wasm_wamr_instance(hak_wasm_wamr *guest);
HAK_API wasm_exec_env_t hak_wasm_wamr_exec_env(hak_wasm_wamr *guest);

typedef struct hak_wasm_wamr_snapshot hak_wasm_wamr_snapshot;
/* Takes a snapshot: memory, globals, tables and dropped segments as they are now, their sizes included (even
 * of a memory without a page), and the exit code. The snapshot serves all guests of the same module and
 * tenant; the tenant is charged for its image (hak_wasm_image_take). Returns NULL with the reason, a static
 * text: no memory, over a limit, or the module has a table or a global of external references, which belong
 * to one instance. This build of WAMR does not load modules with several memories, shared memories or
 * vectors. In WAMR each instance has its own copy of the memories and tables that its module imports; a reset
 * restores these as well. If the guest has opened, closed or renumbered file descriptors, the snapshot serves
 * this instance alone, and what is open stays open in the host until the snapshot is dropped. */
HAK_API hak_wasm_wamr_snapshot *hak_wasm_wamr_take(hak_wasm_wamr *guest, const char **why);
/* Drops a snapshot, before the tenant is closed and before wasm_runtime_destroy. NULL is fine. */
HAK_API void hak_wasm_wamr_drop(hak_wasm_wamr_snapshot *snapshot);
/* Makes the guest what it was when the snapshot was taken, whatever it did since, traps included. 0 = reset
 * in place. 1 = instantiated anew first, because the guest opened, closed or renumbered file descriptors;
 * only then its start function runs again, before the rest is restored. -1 = not possible: no memory, over a
 * limit, another module, or the descriptors in the snapshot itself differ from those of a new instance; the
 * guest can then only be closed. Positions and flags of open files, and what natives keep for the guest, are
 * not restored. */
HAK_API int hak_wasm_wamr_reset(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot);
/* Does what hak_wasm_wamr_reset does, for a guest that waits for its next request: its memory rests
 * (hak_wasm_memory_rest), so that ticks give its pages back. hak_wasm_wamr_call ends the rest, and so do
 * hak_wasm_wamr_instance and _exec_env: a host that uses WAMR's objects by itself asks for them anew. */
HAK_API int hak_wasm_wamr_rest(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
