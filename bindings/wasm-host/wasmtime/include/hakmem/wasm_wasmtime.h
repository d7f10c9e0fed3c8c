/* hakmem for wasmtime, through wasmtime's C API: linear memories from a host of hakmem/wasm.h, tenants,
 * reset of instances, and wasmtime's own heap if asked.
 *
 *       hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
 *       options.bounds = HAK_WASM_GUARD;
 *       hak_wasm_host *host = hak_wasm_host_new(&options);
 *       wasm_engine_t *engine = hak_wasmtime_engine_new(host, wasm_config_new(), &error);
 *       hak_wasmtime_module *module = hak_wasmtime_module_new(tenant, engine, linker, bytes, size, &error);
 *
 *       hak_wasmtime_instance *guest = hak_wasmtime_instance_new(tenant, module, NULL, NULL, &error, &trap);
 *       ...                                                      // the guest initialises itself
 *       hak_wasmtime_image *image = hak_wasmtime_image_take(guest, &why);
 *       for (;;) {
 *           hak_wasmtime_call(guest, &function, arguments, 2, &result, 1, &trap);
 *           if (hak_wasmtime_reset(guest, image) != 0) ...    // close it and make a new one
 *       }
 *
 *   Order of the end: instances, images, modules, engine, tenants, host.
 *
 * WHAT A RESET COVERS
 *   hak_wasmtime_module_new reads the module. If everything that its instances can change is at most one
 *   linear memory of their own, mutable globals of numbers, and tables of functions, it compiles a copy that
 *   exports these under names beginning with "hak:" (which other parts of a program do not see), and a reset
 *   restores all of the instance's state, after a trap too. Else hak_wasmtime_module_refused says why not:
 *   code that drops segments, tables of other references that change, an imported table, memory or mutable
 *   global, reference-typed globals, threads, GC types, more exports in the copy than wasmtime takes. Tables
 *   that no code changes cost a reset nothing; others cost a call of wasmtime for each element.
 *   What the embedder keeps for the guest, WASI descriptors for example, or changes in a table that no code
 *   changes, is the embedder's to reset.
 *   Instances of several modules that import from each other are a program (hak_wasmtime_program_new): it has
 *   one store, one image and one reset. What a part imports is then restored with the part that has it.
 *   Components have instances that the C API does not show: their memories are the tenant's, if it is entered,
 *   but there is no reset.
 *
 * WHAT IS WITHIN THE TENANT'S LIMITS
 *   The limit on linear bytes covers linear memories, shared ones too, and the heap of GC types and external
 *   references, which wasmtime takes from the host as they grow. Each of them has a slot of the host's
 *   address space, and is charged with at least 64 KiB. An instance has at most HAK_WASMTIME_MEMORIES linear
 *   memories, and one such heap, so a limit on linear bytes or on instances bounds a tenant's slots. A tenant
 *   with neither limit can take all slots that there are.
 *   The limit on linear bytes covers tables as well: 8 bytes an element (16 for types other than funcref and
 *   externref, and for elements of passive segments). wasmtime tells nobody when a table grows, so room to
 *   grow is charged from the start, until the instance is closed: a table that the module declares as growing
 *   may grow by a sixteenth of the smallest limit on linear bytes that the tenant or a parent has, shared
 *   with the other such tables of the instance. Beyond that table.grow is -1. No room is charged for modules
 *   that were read to their ends and have no instruction that grows a table. Without such a limit tables are
 *   charged with their initial size, and grow without end.
 *   The limit also covers an instance's globals (16 bytes each), imports, and functions that exports,
 *   elements or globals refer to (32 bytes each), beyond 32 KiB; an instance without a memory is charged with
 *   64 KiB at least.
 *   Until a module is deleted, the tenant for which it was loaded is charged with the size of the compiled
 *   code, and with what wasmtime keeps besides, by the numbers of types, functions, exports and others.
 *   Images are charged, too. The memory for compiling itself is in wasmtime's own heap, counted with
 *   hak_wasmtime_hook_heap, and can be a thousand times the size of the binary and more: set limits on
 *   modules (hak_wasm_tenant_modules), and have strangers' modules compiled in processes of their own
 *   (hakmem/wasm_wasmtime_apart.h): docs/guide/wasm-limits.md.
 *
 * STABILITY  Experimental: wasmtime's interface decides what it can do.
 *
 * CONVENTIONS
 *   Threads    engines and modules: any thread. An instance and its store: one thread at a time. Images: any.
 *   Errors     a wasmtime_error_t that the caller deletes. `error`, `trap` and `why` may be NULL: then nobody
 *              learns the reason. If `trap` is NULL, hak_wasmtime_call returns a trap as an error.
 *   Since      0.1.
 */
#ifndef HAKMEM_WASM_WASMTIME_H
#define HAKMEM_WASM_WASMTIME_H

#include <hakmem/wasm.h>
#include <wasmtime.h>

/* The C API changes with the major version, and the library was compiled for this one. */
#if !defined(WASMTIME_VERSION_MAJOR) || WASMTIME_VERSION_MAJOR != 50
#error "hakmem/wasm_wasmtime.h is for wasmtime 50, and wasmtime.h is that of another version"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Linear memories that a module may define. */
#define HAK_WASMTIME_MEMORIES 4

typedef struct hak_wasmtime_module hak_wasmtime_module;
typedef struct hak_wasmtime_instance hak_wasmtime_instance;
typedef struct hak_wasmtime_image hak_wasmtime_image;

/* Makes an engine whose linear memories come from the host. Takes config over, whatever the outcome, and sets
 * in it the memory creator, memory_init_cow = false (wasmtime panics with a creator otherwise), and
 * reservation and guard as in the host's slots. Returns NULL with an error if the host is not HAK_WASM_GUARD
 * (compiled code relies on faults), or config names the pooling strategy (wasmtime then ignores the creator).
 * The host must outlive the engine. Cost: wasmtime's own, and compiling a module of 30 bytes as a check. */
HAK_API wasm_engine_t *hak_wasmtime_engine_new(hak_wasm_host *host, wasm_config_t *config,
                                               wasmtime_error_t **error);

/* Compiles a module, under the label "load" of the tenant, which is charged, and resolves the imports. The
 * linker is used only during the call; what it defines must not belong to a store. linker NULL = the imports
 * are resolved with each instance: the module is for hak_wasmtime_program_new, and so is one that exports a
 * table which other parts change. Returns NULL with an
 * error, also if the module is over the tenant's limits on modules (hak_wasm_tenant_modules), its code is
 * over the limit on linear bytes, or it defines more than HAK_WASMTIME_MEMORIES memories. Delete the module
 * before the tenant is closed, or close the tenant with HAK_WASM_RETIRE. */
HAK_API hak_wasmtime_module *hak_wasmtime_module_new(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                                     const wasmtime_linker_t *linker, const uint8_t *bytes,
                                                     size_t size, wasmtime_error_t **error);
/* Does what hak_wasmtime_module_new does, but takes the code from a folder (hak_wasm_code_get) if it is
 * there, and else compiles and puts the code there. Code of another wasmtime or of another configuration
 * counts as missing. It is an error if the folder does not exist or others may write to it; if it has no
 * room, the module is compiled each time. folder NULL = none. Nothing limits what a folder holds: where
 * strangers send modules, the host sees to that. Cost: reads and hashes a file in place of compiling. */
HAK_API hak_wasmtime_module *hak_wasmtime_module_load(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                                      const wasmtime_linker_t *linker, const uint8_t *bytes,
                                                      size_t size, const char *folder,
                                                      wasmtime_error_t **error);
/* Deletes a module. NULL is fine. */
HAK_API void hak_wasmtime_module_delete(hak_wasmtime_module *module);
/* Returns why instances cannot be reset, for example "it imports a table"; NULL = they can. */
HAK_API const char *hak_wasmtime_module_refused(const hak_wasmtime_module *module);

/* Prepares a store before the guest's first instruction: fuel, an epoch deadline or its callback, a WASI
 * context (wasmtime_store_context). With epochs or fuel in the configuration this function is needed, because
 * instantiating runs code of the guest. wasmtime_store_limiter replaces the limits on tables and on the
 * number of memories that are described above; the host then counts the growth of tables itself
 * (hak_wasm_charge). */
typedef void hak_wasmtime_prepare_fn(wasmtime_store_t *store, void *data);

/* Makes an instance in a store of its own. Asks the tenant for admission and charges it with memories and
 * tables; the tenant must not be closed before the instance. data: what wasmtime_context_get_data gives.
 * prepare NULL = nothing to do. Returns NULL with an error or a trap (for instance of the start function). */
HAK_API hak_wasmtime_instance *hak_wasmtime_instance_new(hak_wasm_tenant *tenant,
                                                         const hak_wasmtime_module *module, void *data,
                                                         hak_wasmtime_prepare_fn *prepare,
                                                         wasmtime_error_t **error, wasm_trap_t **trap);
/* A module of a program of several modules. */
typedef struct hak_wasmtime_part {
    const char
        *name; /* under which the parts behind it import what it exports; the last part may have NULL */
    const hak_wasmtime_module *module;
} hak_wasmtime_part;
/* Makes instances of several modules in one store, in this order: a part imports from those before it, by
 * their names, and from the linker, which is used only during the call. The program is one instance of the
 * tenant, with the limits of one; all its parts together have HAK_WASMTIME_MEMORIES memories at most. Every
 * function for an instance takes the program: hak_wasmtime_instance_get returns the last part, close ends
 * all, images and resets cover the state of all. The modules must be of the linker's engine and outlive the
 * program. What the linker defines must not belong to a store: wasmtime panics. Returns NULL with an error or
 * a trap. Cost beyond instances of the modules: a copy of the linker, defining each export of the named parts
 * in the copy, and looking up each import by name. */
HAK_API hak_wasmtime_instance *hak_wasmtime_program_new(hak_wasm_tenant *tenant,
                                                        const hak_wasmtime_part *parts, size_t count,
                                                        const wasmtime_linker_t *linker, void *data,
                                                        hak_wasmtime_prepare_fn *prepare,
                                                        wasmtime_error_t **error, wasm_trap_t **trap);
/* Returns the n-th part, from 0; NULL = there are not so many. */
HAK_API wasmtime_instance_t *hak_wasmtime_program_part(hak_wasmtime_instance *program, size_t n);

/* Closes an instance. NULL is fine. */
HAK_API void hak_wasmtime_instance_close(hak_wasmtime_instance *instance);
HAK_API wasmtime_context_t *hak_wasmtime_instance_context(hak_wasmtime_instance *instance);
HAK_API wasmtime_instance_t *hak_wasmtime_instance_get(hak_wasmtime_instance *instance);

/* Does what wasmtime_func_call does, with the tenant entered, and with as much fuel as the tenant has steps
 * (hak_wasm_tenant_steps), if these are limited: then it is an error if the engine's configuration has no
 * fuel. */
HAK_API wasmtime_error_t *hak_wasmtime_call(hak_wasmtime_instance *instance, const wasmtime_func_t *function,
                                            const wasmtime_val_t *arguments, size_t argument_count,
                                            wasmtime_val_t *results, size_t result_count, wasm_trap_t **trap);

/* Makes an image of the state now, for this instance and all others of its module, even of other tenants. The
 * tenant of this instance is charged for the image (hak_wasm_image_take). Returns NULL with the reason, a
 * static text: that of hak_wasmtime_module_refused, a function in a table that none of the modules refers to
 * (the host's, for example), no memory, or over a limit. The tables take 4 bytes an element, charged to the
 * tenant, or, where the module has no memory, to the host's. */
HAK_API hak_wasmtime_image *hak_wasmtime_image_take(hak_wasmtime_instance *instance, const char **why);
/* Drops an image, to which no instance may be reset afterwards. NULL is fine. */
HAK_API void hak_wasmtime_image_drop(hak_wasmtime_image *image);
/* Makes memory, globals and tables equal to the image. An instance of the module that does not have the
 * image's memory yet gets it, grown as needed. Returns 0, or -1, and then the instance must be closed: its
 * memory or a table grew beyond the image (wasmtime cannot shrink them), the image is of another module, or a
 * limit is reached. Cost: as hak_wasm_memory_reset, and a call of wasmtime for each element of tables that
 * may change. */
HAK_API int hak_wasmtime_reset(hak_wasmtime_instance *instance, hak_wasmtime_image *image);
/* Does what hak_wasmtime_reset does, for an instance that waits for its next request: its memory rests
 * (hak_wasm_memory_rest), so that ticks give its pages back. hak_wasmtime_call ends the rest, and so do
 * hak_wasmtime_instance_context and _get: a host that calls wasmtime by itself asks for them anew before it
 * does. */
HAK_API int hak_wasmtime_rest(hak_wasmtime_instance *instance, hak_wasmtime_image *image);

/* Lets wasmtime's own allocations come from the host too, under the current tenant and label, or the host's
 * own tenant. Patches the calls of malloc and its kind in the shared library that wasmtime is in, and in no
 * other. Blocks from before stay libc's. wasmtime aborts when an allocation fails, so past a hard heap limit
 * the host's tenant is charged instead; use limits with heap_soft, and hak_wasm_admit. Call this once in a
 * process, before the first engine, while no other thread is in wasmtime; the host must live as long as the
 * process. Returns 0, or -1 if wasmtime is linked statically or has an allocator of its own, so that no limit
 * would hold, if another host has the hook, or if the table of calls is read-only. */
HAK_API int hak_wasmtime_hook_heap(hak_wasm_host *host);

#ifdef __cplusplus
}
#endif
#endif
