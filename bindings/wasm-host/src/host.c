/* Hosts: options, the root tenant, lent time. */
#include "profile.h"

#include <hakmem/policy.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Copies options of any version, which may be NULL; what is wrong with them, NULL = nothing. */
static const char *read_options(hak_wasm_host_options *o, const hak_wasm_host_options *given)
{
    static const hak_wasm_host_options defaults = HAK_WASM_HOST_OPTIONS_INIT;
    if (!hak_sized_copy(o, sizeof *o, given ? given : &defaults))
        return "hak_wasm_host_options.size is not set, or more is set than is known";
    if (o->bounds != HAK_WASM_FLAT && o->bounds != HAK_WASM_GUARD)
        return "bounds: HAK_WASM_FLAT or HAK_WASM_GUARD";
    if (o->slot_bytes && (o->slot_bytes < (size_t)64 << 10 || o->slot_bytes > (size_t)16 << 30))
        return "slot_bytes: 0 (default), or 64 KiB to 16 GiB";
    if (o->guard_bytes > (size_t)8 << 30) return "guard_bytes: up to 8 GiB";
    if (o->extent_bytes > (size_t)1 << 46) return "extent_bytes: up to 64 TiB";
    if ((unsigned)o->dirty > HAK_WASM_DIRTY_COMPARE) return "dirty: HAK_WASM_DIRTY_*";
    return NULL;
}

const char *hak_wasm_host_options_error(const hak_wasm_host_options *given)
{
    hak_wasm_host_options o;
    return read_options(&o, given);
}

hak_wasm_host *hak_wasm_host_new(const hak_wasm_host_options *given)
{
    hak_wasm_host_options options;
    const hak_wasm_host_options *o = &options;
    if (read_options(&options, given)) return NULL;
    hak_wasm_host *host = aligned_alloc(_Alignof(hak_wasm_host), sizeof *host);
    if (!host) return NULL;
    memset(host, 0, sizeof *host);
    if (hkw_slots_init(&host->slots, o) != 0) {
        free(host);
        return NULL;
    }
    pthread_mutex_init(&host->lock, NULL);
    hkw_spares_init(host);
    host->decay_ns = o->decay_ns ? o->decay_ns : UINT64_C(1000000000);
    hak_space_options space = HAK_SPACE_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.purge_ns = host->decay_ns;
    space.tuning = &tuning;
    space.policy = host->policy = hak_policy_ref(o->policy);
    host->space = hak_space_new(&space);
    if (host->space) {
        hak_wasm_tenant_options root = HAK_WASM_TENANT_OPTIONS_INIT;
        root.name = "host";
        root.children = true;
        root.limits = o->limits;
        host->root = hak_wasm_tenant_new(host, &root);
    }
    if (!host->root) {
        hak_wasm_host_delete(host);
        return NULL;
    }
    return host;
}

void hak_wasm_host_delete(hak_wasm_host *host)
{
    if (!host) return;
    hkw_spares_drop(host, UINT64_MAX);
    hkw_slots_each(&host->slots, hkw_profile_forget, NULL);
    hkw_slots_destroy(&host->slots);
    hak_space_delete(host->space); /* settles the quotas: before tenants */
    while (host->retired) {
        hak_wasm_tenant *tenant = host->retired;
        host->retired = tenant->next;
        hkw_tenant_release(tenant);
    }
    if (host->root) hkw_tenant_release(host->root);
    hkw_spares_destroy(host);
    hak_policy_unref(host->policy);
    pthread_mutex_destroy(&host->lock);
    free(host);
}

hak_wasm_tenant *hak_wasm_host_tenant(hak_wasm_host *host)
{
    return host->root;
}

size_t hak_wasm_slot_bytes(const hak_wasm_host *host)
{
    return host->slots.slot_bytes;
}

size_t hak_wasm_guard_bytes(const hak_wasm_host *host)
{
    return host->slots.guard_bytes;
}

hak_wasm_bounds hak_wasm_host_bounds(const hak_wasm_host *host)
{
    return host->slots.guarded ? HAK_WASM_GUARD : HAK_WASM_FLAT;
}

void hak_wasm_host_tick(hak_wasm_host *host, uint64_t now)
{
    if (now == 0) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
    pthread_mutex_lock(&host->root->lock);
    hak_ctx_tick(host->root->ctx, now);
    pthread_mutex_unlock(&host->root->lock);
    uint64_t at = atomic_load(&host->decay_at);
    const bool early = now < at && at - now <= host->decay_ns; /* more than that: the clock went back */
    if (early || !atomic_compare_exchange_strong(&host->decay_at, &at, now + host->decay_ns)) return;
    uint64_t epoch = atomic_fetch_add(&host->slots.epoch, 1);
    hkw_slots_empty(&host->slots, epoch);
    hkw_slots_cool(&host->slots, epoch, NULL);
    hkw_spares_drop(host, epoch);
}

size_t hak_wasm_host_trim(hak_wasm_host *host)
{
    hkw_spares_drop(host, UINT64_MAX); /* to the space, which the trim empties */
    pthread_mutex_lock(&host->root->lock);
    size_t bytes = hak_ctx_trim(host->root->ctx);
    pthread_mutex_unlock(&host->root->lock);
    bytes += hkw_slots_empty(&host->slots, UINT64_MAX);
    return bytes + hkw_slots_cool(&host->slots, UINT64_MAX, NULL);
}
