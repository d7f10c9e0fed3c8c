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
 *   compile. Modules that were compiled ahead of time are served where it is built with WAMR_BUILD_AOT; with
 *   WAMR_BUILD_DUMP_CALL_STACK profiles have their functions, too. The adapter reads structures of WAMR whose
 *   layout all settings decide. So it is compiled with the host's WAMR, by hakmem_add_wasm_wamr of the CMake
 *   package: see docs/guide/wasm.md. Tried with WAMR of the package wamrx-sys 0.3.0.
 *
 * STABILITY  Experimental: WAMR's own structures decide what it can do.
 *
 * CONVENTIONS
 *   Those of hakmem/wasm.h. A guest belongs to one thread at a time. WAMR has one allocator for the process,
 * so one host at a time. Each wrapper costs what WAMR's function costs, and setting the tenant and the label:
 * some steps. hak_wasm_wamr_take and _reset copy what the guest's memory, globals and tables hold; a reset
 * leaves out pages that the guest did not touch. Since 0.1 for everything in this file.
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

/* wasm_runtime_load for a tenant, label LOAD. `bytes` are changed by WAMR and must stay until
 * wasm_runtime_unload, which needs no wrapper. NULL with a text in `error`, also where WAMR does not take its
 * memory from the tenant's host (hak_wasm_wamr_args): no limit would hold. `error` may be NULL. */
HAK_API wasm_module_t hak_wasm_wamr_load(hak_wasm_tenant *tenant, uint8_t *bytes, uint32_t size, char *error,
                                         uint32_t error_size);

/* Limits on steps (hak_wasm_tenant_steps) need WAMR_BUILD_INSTRUCTION_METERING=1, which costs the interpreter
 * a comparison an instruction, and a program that is linked with --wrap=wasm_exec_env_create, as
 * hakmem_add_wasm_wamr arranges for WAMR as a static library. A step is an instruction; one that fills or
 * copies a range is one, too, however long: hak_wasm_module_limits.ranges = HAK_NONE keeps guests with such
 * instructions out. At most 2^31 - 1 for each call, and again for each function that the host calls while the
 * guest waits for it. Machine code counts none, and is refused under such a limit. */

typedef struct hak_wasm_wamr hak_wasm_wamr;
/* An instance with an execution environment. NULL with a text in `error` when the tenant may have no more
 * instances, when the module wants 65,536 pages (WAMR asks for 0 bytes then) or more than a slot has, or when
 * there is no memory. Growth ends at 65,535 pages. */
HAK_API hak_wasm_wamr *hak_wasm_wamr_open(hak_wasm_tenant *tenant, wasm_module_t module, uint32_t stack_size,
                                          char *error, uint32_t error_size);
/* NULL is fine. */
HAK_API void hak_wasm_wamr_close(hak_wasm_wamr *guest);
/* Calls an exported function; argv as in wasm_runtime_call_wasm. argc: cells that argv has, for arguments and
 * for results, which may be more than the arguments need; one is there also with argc 0. argv NULL
 * where there are neither. The guest's module decides what its function takes and returns: one with more than
 * argv has is refused. What system interface calls allocate is under label WASI. false = no such function,
 * or a trap: see hak_wasm_wamr_exception. */
HAK_API bool hak_wasm_wamr_call(hak_wasm_wamr *guest, const char *function, uint32_t argc, uint32_t *argv);
/* What the last call failed with; NULL = it did not. */
HAK_API const char *hak_wasm_wamr_exception(hak_wasm_wamr *guest);

/* For WAMR's own functions. They change when hak_wasm_wamr_reset returns 1, and so do function handles. */
HAK_API wasm_module_inst_t hak_wasm_wamr_instance(hak_wasm_wamr *guest);
HAK_API wasm_exec_env_t hak_wasm_wamr_exec_env(hak_wasm_wamr *guest);

typedef struct hak_wasm_wamr_snapshot hak_wasm_wamr_snapshot;
/* Memory, globals, tables and dropped segments as they are now, their sizes included, also of a memory
 * without a page; the exit code. Serves all guests of the same module and tenant, which is charged for its
 * image (hak_wasm_image_take). NULL with the reason, which is static: no memory, over a limit, or the module
 * has a table or a global of external references, which belong to one instance. Modules with several
 * memories, shared ones, or vectors are not loaded by this build of WAMR. Memories and tables that a module
 * imports are each instance's own in WAMR, and restored as well. If the guest has opened, closed or
 * renumbered file descriptors, the snapshot serves this instance alone, and what is open stays open in the
 * host until it is dropped. */
HAK_API hak_wasm_wamr_snapshot *hak_wasm_wamr_take(hak_wasm_wamr *guest, const char **why);
/* Before the tenant is closed, and before wasm_runtime_destroy. NULL is fine. */
HAK_API void hak_wasm_wamr_drop(hak_wasm_wamr_snapshot *snapshot);
/* The guest as it was when the snapshot was taken, whatever it did since, traps included.
 * 0 = in place. 1 = instantiated anew first, because it opened, closed or renumbered file descriptors: only
 * then is its start function run again, before the rest is restored. -1 = not possible: no memory, over a
 * limit, another module, or descriptors differ from a new instance's in the snapshot itself; only
 * hak_wasm_wamr_close is left then. Positions and flags of open files, and what natives keep for the guest,
 * are not restored. */
HAK_API int hak_wasm_wamr_reset(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
