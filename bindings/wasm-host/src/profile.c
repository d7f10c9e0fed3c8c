/* Profiles of tenants: whose functions run, and growths of linear memories as blocks. */
#include "profile.h"

#include "callsite/walk.h"
#include "common/otel.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 32 };

static _Thread_local hak_wasm_guest running;

hak_wasm_guest hak_wasm_guest_run(hak_wasm_guest guest)
{
    const hak_wasm_guest before = running;
    running = guest;
    return before;
}

/* ---- Frames --------------------------------------------------------------------------------------- */

/* Functions of another tenant's guest are none of this tenant's business. */
static size_t take_guest(const hkw_profile *p, uintptr_t *frames, size_t room)
{
    hak_wasm_frame all[DEPTH_MOST];
    if (!running.stack || running.tenant != p->tenant) return 0;
    const size_t n = running.stack(running.user, all, room < DEPTH_MOST ? room : DEPTH_MOST);
    for (size_t i = 0; i < n; i++)
        frames[i] = hkw_frames_number(p->frames, &all[i]);
    return n;
}

/* The host's stack, from the call into the binding on; site 0 = all of it. */
static size_t take_native(hak_site site, uintptr_t *frames, size_t room)
{
#ifdef HKC_CFI_WALK
    static hkc_walk walk;
    return hkc_walk_from(&walk, site, frames, room);
#else
    if (site != 0 && room > 0) frames[0] = site;
    return site != 0 && room > 0;
#endif
}

static size_t take_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    const hkw_profile *p = user;
    (void)ctx;
    const size_t n = take_guest(p, frames, room);
    return n > 0 ? n : take_native(site != 0 ? site : p->site, frames, room);
}

/* ---- Linear memories ------------------------------------------------------------------------------ */

static void push(hkw_profile *p, hkw_slot *slot, size_t bytes, hak_site site)
{
    hkw_growth *g = malloc(sizeof *g);
    if (!g) return;
    pthread_mutex_lock(&p->lock);
    hak_ctx_tick(p->linear, 0); /* a window may begin: growths are too few for the context's own look */
    g->block = hak_alloc_cs(p->linear, bytes, HAK_WASM_LINEAR, site);
    pthread_mutex_unlock(&p->lock);
    if (!g->block) {
        free(g);
        return;
    }
    g->bytes = bytes;
    g->next = slot->growth;
    slot->growth = g;
}

void hkw_profile_grown(hak_wasm_tenant *tenant, hkw_slot *slot, size_t bytes, hak_site site)
{
    hkw_profile *p = atomic_load_explicit(&tenant->profile, memory_order_acquire);
    if (p && bytes > 0) push(p, slot, bytes, site);
}

/* What grew last goes first. */
void hkw_profile_shrunk(hak_wasm_tenant *tenant, hkw_slot *slot, size_t bytes)
{
    hkw_profile *p = atomic_load_explicit(&tenant->profile, memory_order_acquire);
    while (slot->growth && bytes > 0) {
        hkw_growth *g = slot->growth;
        const size_t part = bytes < g->bytes ? bytes : g->bytes;
        pthread_mutex_lock(&p->lock);
        if (part == g->bytes) hak_free(p->linear, g->block);
        else
            g->block =
                hak_realloc(p->linear, g->block, g->bytes - part); /* in place, or smaller: cannot fail */
        pthread_mutex_unlock(&p->lock);
        bytes -= part;
        g->bytes -= part;
        if (g->bytes > 0) continue;
        slot->growth = g->next;
        free(g);
    }
}

void hkw_profile_forget(void *unused, hkw_slot *slot)
{
    (void)unused;
    while (slot->growth) {
        hkw_growth *g = slot->growth;
        slot->growth = g->next;
        free(g);
    }
}

/* ---- Beginning and end ---------------------------------------------------------------------------- */

static void delete (hkw_profile *p)
{
    if (p->space) hak_space_delete(p->space); /* its context goes with it */
    hkw_frames_delete(p->frames);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void hkw_profile_delete(hkw_profile *p)
{
    if (!p) return;
    if (p->linear) hak_ctx_destroy(p->linear);
    p->linear = NULL;
    delete (p);
}

/* Pages that nobody touches are not to be made resident ahead. */
static hak_space *untouched_space(void)
{
    hak_os os;
    hak_os_default(&os);
    os.populate = NULL;
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    options.os = &os;
    return hak_space_new(&options);
}

static hkw_profile *profile_new(hak_wasm_tenant *tenant)
{
    hkw_profile *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->tenant = tenant;
    pthread_mutex_init(&p->lock, NULL);
    hak_options options = HAK_OPTIONS_INIT;
    options.labels = hkw_label_names + 1;
    options.label_count = HAK_WASM_LABELS - 1;
    p->frames = hkw_frames_new();
    p->space = p->frames ? untouched_space() : NULL;
    p->linear = p->space ? hak_ctx_new(p->space, &options) : NULL;
    if (p->linear) return p;
    delete (p);
    return NULL;
}

int hak_wasm_profile_start(hak_wasm_tenant *tenant, const hak_profile_options *given)
{
    hak_profile_options o = HAK_PROFILE_OPTIONS_INIT;
    if (given && !hak_sized_copy(&o, sizeof o, given)) return -1;
    if (hak_profile_options_error(&o) || o.depth > DEPTH_MOST) return -1;
    if (o.depth == 0) o.depth = DEPTH_MOST;
    pthread_mutex_lock(&tenant->lock);
    hkw_profile *p = atomic_load(&tenant->profile);
    if (!p) p = profile_new(tenant);
    int error = p ? 0 : -2;
    o.frames = take_frames;
    o.user = p;
    if (!o.sample_made && !o.sample_gone) hkc_otel_tell(&o);
    if (!error) error = hak_profile_start(tenant->ctx, &o);
    if (!error) {
        o.mode = HAK_PROFILE_EXACT;
        pthread_mutex_lock(&p->lock);
        error = hak_profile_start(p->linear, &o);
        pthread_mutex_unlock(&p->lock);
        if (error) hak_profile_stop(tenant->ctx);
    }
    if (!error) atomic_store_explicit(&tenant->profile, p, memory_order_release);
    else if (p && !atomic_load(&tenant->profile)) hkw_profile_delete(p);
    pthread_mutex_unlock(&tenant->lock);
    return error;
}

int hak_wasm_profile_stop(hak_wasm_tenant *tenant)
{
    pthread_mutex_lock(&tenant->lock);
    hkw_profile *p = atomic_load(&tenant->profile);
    int error = p ? hak_profile_stop(tenant->ctx) : -1;
    if (!error) {
        pthread_mutex_lock(&p->lock);
        hak_profile_stop(p->linear);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&tenant->lock);
    return error;
}
