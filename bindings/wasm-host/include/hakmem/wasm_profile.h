/* hakmem for WebAssembly hosts: profiles that show which function of the guest a tenant's memory is for.
 *
 *       hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
 *       hak_wasm_profile_start(tenant, &options);
 *       ... hak_wasm_wamr_call(guest, "handle", 1, argv) ...
 *       hak_wasm_report_json(tenant, file);              // then: hakmem report FILE
 *
 * A tenant has two profiles. One counts each growth of its linear memories, exactly, by the running functions
 * of the guest. The other counts the blocks in its heap, sampled or exact: by the same functions while a
 * guest of this tenant runs on the thread, else by the host's own stack of machine code (x86-64). Neither
 * sees a guest's own malloc within its linear memory.
 *
 * A tenant's profile holds nothing of other tenants: it has copies of the names of functions, no frame of a
 * guest that runs for another tenant, and the context of a tenant with a profile does not go to the next
 * tenant.
 *
 * STABILITY  Experimental.
 *
 * CONVENTIONS are those of hakmem/wasm.h. Cost: off, a load and a test for each memory that is made, grown or
 * freed, and a store for each call of a guest; else see hakmem/profile.h. Since 0.1. */
#ifndef HAKMEM_WASM_PROFILE_H
#define HAKMEM_WASM_PROFILE_H

#include <hakmem/profile.h>
#include <hakmem/wasm.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins both profiles, or begins them anew. options NULL = defaults; `frames` and `user` are ignored, and
 * depth is at most 32. Without sample_made and sample_gone, samples are told by the USDT probes
 * otel_memory:alloc and otel_memory:free, on Linux with x86-64 or aarch64. A growth of a linear memory is a
 * sample that stands for itself; its address is a name, and has none of the memory's bytes. Memories and
 * blocks that are live already are not counted. Returns 0; -1 if the options are broken or a profile runs; -2
 * if memory is out or the tenant's limit is reached. Cost: that of two calls of hak_profile_start(). */
HAK_API int hak_wasm_profile_start(hak_wasm_tenant *tenant, const hak_profile_options *options);
/* Takes no more samples. The results stay until the tenant is closed, and frees are still counted. Returns 0,
 * or -1 if no profile runs. Cost: that of two calls of hak_profile_stop(). */
HAK_API int hak_wasm_profile_stop(hak_wasm_tenant *tenant);
/* Writes the report, "hakmem-report/1", of this tenant alone: its context, with what its linear memories are
 * and what of them is resident, and, if it has a profile, one more entry for them. The report goes to memory
 * first, so that nobody waits for `out`. Returns 0, or an errno: EINVAL if `out` is NULL. Cost: that of
 * hak_wasm_tenant_proportional(), a step for each stack and each size class, and the names of functions that
 * were not looked up before, from the tables of symbols of the process. */
HAK_API int hak_wasm_report_json(hak_wasm_tenant *tenant, FILE *out);

/* ---- Looking at a host while it runs ------------------------------------------------------------- */

/* A report that somebody asked for, while hak_wasm_tenants_fn runs. */
typedef struct hak_wasm_look hak_wasm_look;
/* Calls hak_wasm_look_at() for each tenant to be shown; none of these may be closed meanwhile. Runs on a
 * thread of the library that holds no lock, twice for a report: once for where the memory is, once for what
 * it is for. */
typedef void hak_wasm_tenants_fn(void *user, hak_wasm_look *look);
/* Adds a tenant to the report: its context, labels, and profiles if it has any. Holds the tenant's lock while
 * it writes these to memory. Cost: that of hak_wasm_report_json() without `out`. */
HAK_API void hak_wasm_look_at(hak_wasm_look *look, hak_wasm_tenant *tenant);
/* Lets `hakmem attach PID` and `hakmem top PID` look at this process from now on. Starts one thread, and
 * opens a socket with mode 0600 at which no other user but root gets anything. place: "on", or a path with a
 * slash, in which %p is the process. Works once in a process, even after a stop; a forked child is another
 * process. Returns 0, or -1, and `error`, which has room for error_size bytes, says why in a line. Cost: a
 * thread that sleeps until somebody looks.
 */
HAK_API int hak_wasm_live_start(const char *place, hak_wasm_tenants_fn *tenants, void *user, char *error,
                                size_t error_size);
/* Removes the socket, and waits for a running call of the function, which is not called any more. */
HAK_API void hak_wasm_live_stop(void);

/* ---- For adapters -------------------------------------------------------------------------------- */

typedef struct hak_wasm_frame {
    const char *function; /* NULL = the module does not say; copied */
    const char *module;   /* of an import: where it is imported from; NULL = the guest's own */
    uint32_t index;       /* of the function */
} hak_wasm_frame;
/* Writes the functions of the guest that run on this thread now, the innermost first, at most `room`. Runs
 * inside of allocations: must not call into the host. */
typedef size_t hak_wasm_stack_fn(void *user, hak_wasm_frame *frames, size_t room);

typedef struct hak_wasm_guest {
    hak_wasm_tenant *tenant; /* for which it runs; NULL = none runs */
    hak_wasm_stack_fn *stack;
    void *user;
} hak_wasm_guest;
/* Makes a guest the running guest of this thread, and returns the one before, which the adapter gives to this
 * function when the guest has returned. Nests. Cost: two copies of three words in a thread-local variable. */
HAK_API hak_wasm_guest hak_wasm_guest_run(hak_wasm_guest guest);

#ifdef __cplusplus
}
#endif
#endif
