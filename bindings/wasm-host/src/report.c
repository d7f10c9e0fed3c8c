/* The report of a tenant as JSON. */
#include "profile.h"

#include "callsite/frame.h"
#include "common/profile_json.h"
#include "common/report_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct namer {
    hkw_frames *frames; /* NULL = none */
    hkc_names *names;
    char function[32];
} namer;

static int put(void *to, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, to) == n ? 0 : ENOMEM;
}

static bool add_names(void *user, const hak_profile_stack *stack)
{
    for (unsigned i = 0; i < stack->depth; i++)
        if ((stack->frames[i] & HKW_FRAME_BIT) == 0 && !hkc_names_add(user, stack->frames[i])) return false;
    return true;
}

/* Takes the lock with all stacks' names known. They are looked up without it, which reads the symbols of a
 * library when one is met first; a context that makes new stacks all the time gets addresses for those of the
 * last moment. *ctx is under the lock: another one may be there the next time. */
static void lock_named(pthread_mutex_t *lock, hak_ctx *const *ctx, hkc_names *names)
{
    enum { ROUNDS = 4 };
    for (int round = 0;; round++) {
        pthread_mutex_lock(lock);
        if (round == ROUNDS) return;
        hak_profile_visit(*ctx, add_names, names);
        if (names->count == names->resolved) return;
        pthread_mutex_unlock(lock);
        hkc_names_resolve(names);
    }
}

static void name_frame(void *user, uintptr_t frame, hkc_frame *out)
{
    namer *n = user;
    hak_wasm_frame guest;
    hkc_frame_of(n->names, frame, out);
    if (!out->function && n->frames && hkw_frames_at(n->frames, frame, &guest)) {
        if (!guest.function) snprintf(n->function, sizeof n->function, "func[%u]", guest.index);
        else if (*guest.function == '\0') snprintf(n->function, sizeof n->function, "(no room for its name)");
        out->function = guest.function && *guest.function != '\0' ? guest.function : n->function;
        out->module = guest.module ? guest.module : "guest";
        out->native = guest.module; /* an import is the host's */
    }
}

/* Committed are the pages that the guests may touch, not those of the context that counts them. */
static void put_linear(hkc_json *w, hkw_profile *p, namer *n)
{
    char name[80];
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(p->linear, &s);
    snprintf(name, sizeof name, "%s%slinear", p->tenant->name, *p->tenant->name != '\0' ? " " : "");
    hkc_json_object(w, NULL);
    hkc_json_text(w, "name", name);
    hkc_json_object(w, "stats");
    hkc_json_size(w, "live_bytes", s.live_bytes);
    hkc_json_size(w, "live_blocks", s.live_blocks);
    hkc_json_size(w, "peak_bytes", s.peak_bytes);
    hkc_json_size(w, "committed_bytes", s.live_bytes);
    hkc_json_end(w);
    hkc_profile_json(w, p->linear, name_frame, n);
    hkc_json_end(w);
}

/* Writes what the linear memories are, with a profile and without. */
static void put_memories(hkc_json *w, hak_wasm_tenant *tenant, hkw_residence linear)
{
    hkc_json_object(w, "linear");
    hkc_json_size(w, "bytes",
                  atomic_load(&tenant->own_bytes) + atomic_load(&tenant->own_charged) +
                      atomic_load(&tenant->own_images));
    hkc_json_size(w, "memories", atomic_load(&tenant->own_memories));
    hkc_json_size(w, "resident_bytes", linear.own);
    hkc_json_size(w, "proportional_bytes", linear.proportional);
    hkc_json_end(w);
}

/* Another tenant may have had the context before: its failures, and what magazines kept of its blocks, are
 * left out. What this one takes out of these is not in the context's peak, so no report tells less than one
 * before it. */
static void put_heap(hkc_json *w, hak_wasm_tenant *tenant)
{
    hak_stats s = {.size = sizeof s};
    hak_ctx_stats(tenant->ctx, &s);
    s.failures = tenant->failures;
    s.peak_bytes -= tenant->at_hand;
    if (s.peak_bytes < s.live_bytes) s.peak_bytes = s.live_bytes;
    if (s.peak_bytes < tenant->heap_peak) s.peak_bytes = tenant->heap_peak;
    tenant->heap_peak = s.peak_bytes;
    hkc_report_json_context_as(w, tenant->name, tenant->ctx, &s);
}

int hkw_report_tenant(hkc_json *w, hak_wasm_tenant *tenant, hkc_names *names)
{
    const hkw_residence linear = hkw_tenant_residence(tenant); /* without the lock of the heap */
    lock_named(&tenant->lock, &tenant->ctx, names);
    hkw_profile *p = atomic_load(&tenant->profile);
    namer n = {.frames = p ? p->frames : NULL, .names = names};
    put_heap(w, tenant);
    put_memories(w, tenant, linear);
    int error = hkc_profile_json(w, tenant->ctx, name_frame, &n);
    hkc_json_end(w);
    pthread_mutex_unlock(&tenant->lock);
    if (p) {
        lock_named(&p->lock, &p->linear, names);
        put_linear(w, p, &n);
        pthread_mutex_unlock(&p->lock);
    }
    return error;
}

static size_t within_slots(void *slots, uintptr_t start, uintptr_t end)
{
    return hkw_slots_within(slots, start, end);
}

void hkw_parts_tenant(hkc_parts *parts, hak_wasm_tenant *tenant)
{
    pthread_mutex_lock(&tenant->lock);
    if (tenant->ctx) hkc_parts_context(parts, tenant->ctx);
    pthread_mutex_unlock(&tenant->lock);
    hkc_parts_take_guests(parts, within_slots, &tenant->host->slots);
}

void hkw_report_begin(hkc_json *w, const hkc_parts *parts)
{
    const hkc_report_process process = {.runtime = "wasm", .parts = parts};
    hkc_report_json_begin(w, &process);
}

int hak_wasm_report_json(hak_wasm_tenant *tenant, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    hkc_json w;
    if (!out) return EINVAL;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return ENOMEM;
    hkc_json_open(&w, put, memory);
    hkc_parts *parts = hkc_parts_begin(0);
    hkw_parts_tenant(parts, tenant);
    hkc_parts_end(parts);
    hkw_report_begin(&w, parts);
    hkc_parts_close(parts);
    hkc_names names = {0};
    int error = hkw_report_tenant(&w, tenant, &names);
    hkc_names_close(&names);
    hkc_report_json_end(&w);
    const int failed = hkc_json_close(&w);
    if (fclose(memory) != 0 && !error) error = ENOMEM;
    if (!error) error = failed;
    errno = EIO;
    if (!error && (fwrite(text, 1, size, out) != size || fflush(out) != 0)) error = errno;
    free(text);
    return error;
}
