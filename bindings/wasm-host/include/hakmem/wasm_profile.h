/* hakmem for WebAssembly hosts: what a tenant's memory is for, by function of the guest.
 *
 *       hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
 *       hak_wasm_profile_start(tenant, &options);
 *       ... hak_wasm_wamr_call(guest, "handle", 1, argv) ...
 *       hak_wasm_report_json(tenant, file);              // then: hakmem report FILE
 *
 * Two profiles are kept for a tenant: of its linear memories, each growth exact, by the functions of the
 * guest that were running; and of the blocks in its heap, sampled or exact, by the same functions while a
 * guest of this tenant runs on the thread, else by the host's own stack of machine code (x86-64). A guest's
 * own malloc within its linear memory is not seen.
 *
 * A tenant's profile holds nothing of others: names of functions are copied into it, a guest that runs for
 * another tenant is none of its frames, and a context that had a profile is not handed to the next tenant.
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

/* Begins both profiles, or begins anew. Of `options`, `frames` and `user` are not heeded; depth at most 32;
 * NULL = defaults. Memories and blocks that are live already are not in it. 0 = ok; -1 = broken options, or a
 * profile runs; -2 = no memory, or over the tenant's limit. Cost: that of two calls of
 * hak_profile_start(). */
HAK_API int hak_wasm_profile_start(hak_wasm_tenant *tenant, const hak_profile_options *options);
/* No more samples; what there is stays until the tenant is closed, and what is freed is still counted.
 * 0 = ok; -1 = none runs. Cost: that of two calls of hak_profile_stop(). */
HAK_API int hak_wasm_profile_stop(hak_wasm_tenant *tenant);
/* The report, "hakmem-report/1", of this tenant alone: its context, and one of its linear memories. Written
 * to memory first, so that nobody waits for `out`. 0 = ok; else errno, EINVAL where `out` is NULL. Cost: a
 * step for each stack and each size class, and the names of functions that were not looked up before, from
 * the tables of symbols of the process. */
HAK_API int hak_wasm_report_json(hak_wasm_tenant *tenant, FILE *out);

/* ---- Looking at a host while it runs ------------------------------------------------------------- */

/* A report that somebody asked for, while hak_wasm_tenants_fn runs. */
typedef struct hak_wasm_look hak_wasm_look;
/* Calls hak_wasm_look_at() for each tenant that is to be seen; none of them may be closed meanwhile. On a
 * thread of the library, which holds no lock. Called twice for a report: where the memory is, and what it is
 * for. */
typedef void hak_wasm_tenants_fn(void *user, hak_wasm_look *look);
/* Adds a tenant to the report: its context, labels, and profiles if it has any. What waits for the tenant's
 * lock waits while they are written to memory. Cost: that of hak_wasm_report_json() without `out`. */
HAK_API void hak_wasm_look_at(hak_wasm_look *look, hak_wasm_tenant *tenant);
/* `hakmem attach PID` and `hakmem top PID` may look at this process from now on: a socket of its user's, mode
 * 0600, at which no other user but root gets anything; one thread. place: "on", or a path with a slash, in
 * which %p is the process. Once in a process, also after a stop; a forked child is another one. 0 = ok; -1 =
 * error, which has room for error_size bytes, says why in a line. Cost: a thread that sleeps until somebody looks.
 */
HAK_API int hak_wasm_live_start(const char *place, hak_wasm_tenants_fn *tenants, void *user, char *error,
                                size_t error_size);
/* The socket is gone, and the function is not called any more: waits for a call that goes on. */
HAK_API void hak_wasm_live_stop(void);

/* ---- For adapters -------------------------------------------------------------------------------- */

typedef struct hak_wasm_frame {
    const char *function; /* NULL = the module does not say; copied */
    const char *module;   /* of an import: that it is imported from; NULL = the guest's own */
    uint32_t index;       /* of the function */
} hak_wasm_frame;
/* The functions of the guest that run on this thread now, the innermost first, at most `room`. Runs inside of
 * allocations: must not call into the host. */
typedef size_t hak_wasm_stack_fn(void *user, hak_wasm_frame *frames, size_t room);

typedef struct hak_wasm_guest {
    hak_wasm_tenant *tenant; /* for which it runs; NULL = none runs */
    hak_wasm_stack_fn *stack;
    void *user;
} hak_wasm_guest;
/* Makes a guest the one that runs on this thread and returns what was, to be given back to this function when
 * it has returned. Nests. Cost: two copies of three words in a thread-local variable. */
HAK_API hak_wasm_guest hak_wasm_guest_run(hak_wasm_guest guest);

#ifdef __cplusplus
}
#endif
#endif
