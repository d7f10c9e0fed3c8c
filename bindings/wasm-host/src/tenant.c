/* Making and ending tenants; limits; admission. */
#include "tenant.h"

#include <stdlib.h>
#include <string.h>

const char *const hkw_label_names[HAK_WASM_LABELS] = {"other", "load",   "instance", "stack",
                                                      "wasi",  "linear", "native"};

const char *hak_wasm_label_name(hak_wasm_label label)
{
    return (unsigned)label < HAK_WASM_LABELS ? hkw_label_names[label] : NULL;
}

const char *hak_wasm_tenant_name(const hak_wasm_tenant *tenant)
{
    return tenant->name;
}

hak_wasm_host *hak_wasm_tenant_host(const hak_wasm_tenant *tenant)
{
    return tenant->host;
}

static bool seems_empty(const hak_wasm_tenant *tenant)
{
    return (ptrdiff_t)tenant->blocks <= 0;
}

/* Exact, and makes the count so. The context drops frees of what is free already, or is no block; the count
 * does not know, and may be too low. A flush, since magazines hide such frees. */
static bool is_empty(hak_wasm_tenant *tenant)
{
    if (!seems_empty(tenant)) return false;
    hak_stats stats;
    stats.size = sizeof stats;
    hak_ctx_flush(tenant->ctx);
    hak_ctx_stats(tenant->ctx, &stats);
    tenant->blocks = stats.live_blocks;
    return stats.live_blocks == 0;
}

/* The group whose limit counts for contexts of this tenant. */
static hak_quota *quota_of(const hak_wasm_tenant *tenant)
{
    return tenant->quota || !tenant->parent ? tenant->quota : quota_of(tenant->parent);
}

static hak_ctx *new_context(hak_wasm_tenant *tenant)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = tenant->name;
    options.user = tenant;
    options.quota = quota_of(tenant);
    options.labels = hkw_label_names + 1;
    options.label_count = HAK_WASM_LABELS - 1;
    options.policy = tenant->host->policy;
    return hak_ctx_new(tenant->host->space, &options);
}

/* A context that others had, and that is empty, is replaced before a limit holds for it. Under the lock. */
static void renew(hak_wasm_tenant *tenant)
{
    hak_ctx *fresh =
        tenant->closes && !atomic_load(&tenant->profile) && is_empty(tenant) ? new_context(tenant) : NULL;
    if (!fresh) return;
    hak_ctx_destroy(tenant->ctx);
    tenant->ctx = fresh;
    tenant->closes = 0;
    tenant->at_hand = 0;
}

void hak_wasm_tenant_limit(hak_wasm_tenant *tenant, const hak_wasm_limits *limits)
{
    if (!limits) return;
    size_t hard = limits->heap_soft ? 0 : limits->heap_bytes;
    atomic_store(&tenant->heap_limit, limits->heap_bytes);
    atomic_store(&tenant->account[HKW_BYTES].limit, limits->linear_bytes);
    atomic_store(&tenant->account[HKW_INSTANCES].limit, limits->instances);
    if (tenant->quota) {
        hak_quota_set(tenant->quota, hard);
        if (tenant == tenant->host->root && limits->heap_bytes) hkw_spares_drop(tenant->host, UINT64_MAX);
        return;
    }
    pthread_mutex_lock(&tenant->lock);
    if (limits->heap_bytes) renew(tenant);
    hak_limit(tenant->ctx, 0, hard, NULL, NULL);
    pthread_mutex_unlock(&tenant->lock);
}

void hkw_tenant_release(hak_wasm_tenant *tenant)
{
    hak_quota_delete(tenant->quota);
    hkw_profile_delete(atomic_load(&tenant->profile));
    pthread_mutex_destroy(&tenant->lock);
    pthread_mutex_destroy(&tenant->memories_lock);
    free(tenant);
}

static hak_wasm_tenant *make(hak_wasm_host *host, hak_wasm_tenant *parent, bool children)
{
    hak_wasm_tenant *tenant = calloc(1, sizeof *tenant);
    if (!tenant) return NULL;
    tenant->host = host;
    tenant->parent = parent;
    atomic_init(&tenant->refs, 1);
    pthread_mutex_init(&tenant->lock, NULL);
    pthread_mutex_init(&tenant->memories_lock, NULL);
    bool ok = !children || (tenant->quota = hak_quota_new(parent ? parent->quota : NULL, 0));
    if (ok) tenant->ctx = new_context(tenant);
    if (!tenant->ctx) {
        hkw_tenant_release(tenant);
        return NULL;
    }
    if (parent) atomic_fetch_add_explicit(&parent->refs, 1, memory_order_relaxed);
    return tenant;
}

hak_wasm_tenant *hak_wasm_tenant_new(hak_wasm_host *host, const hak_wasm_tenant_options *given)
{
    hak_wasm_tenant_options o = HAK_WASM_TENANT_OPTIONS_INIT;
    if (given && !hak_sized_copy(&o, sizeof o, given)) return NULL;
    hak_wasm_tenant *parent = o.parent ? o.parent : host->root, *tenant = NULL;
    if (parent && (!parent->quota || parent->host != host)) return NULL;
    if (parent && parent == host->root && !o.children) tenant = hkw_spare_take(host, &o.limits);
    if (!tenant) tenant = make(host, parent, o.children);
    if (!tenant) return NULL;
    strncpy(tenant->name, o.name ? o.name : "", sizeof tenant->name - 1);
    hak_wasm_tenant_limit(tenant, &o.limits);
    return tenant;
}

void hkw_tenant_unref(hak_wasm_tenant *tenant)
{
    while (tenant && atomic_fetch_sub_explicit(&tenant->refs, 1, memory_order_acq_rel) == 1) {
        hak_wasm_host *host = tenant->host;
        hak_wasm_tenant *parent = tenant->parent;
        if (tenant->listed) {
            pthread_mutex_lock(&host->lock);
            hak_wasm_tenant **at = &host->retired;
            while (*at != tenant)
                at = &(*at)->next;
            *at = tenant->next;
            pthread_mutex_unlock(&host->lock);
        }
        hkw_tenant_release(tenant);
        tenant = parent;
    }
}

size_t hkw_tenant_committed(const hak_wasm_tenant *tenant)
{
    hak_stats stats;
    stats.size = sizeof stats;
    hak_ctx_stats(tenant->ctx, &stats);
    return stats.committed_bytes;
}

static void destroy_context(hak_wasm_tenant *tenant)
{
    hak_ctx_destroy(tenant->ctx);
    tenant->ctx = NULL;
    pthread_mutex_unlock(&tenant->lock);
    hkw_tenant_unref(tenant);
}

void hkw_tenant_unlock(hak_wasm_tenant *tenant)
{
    if (tenant->closed && tenant->ctx && is_empty(tenant)) destroy_context(tenant);
    else pthread_mutex_unlock(&tenant->lock);
}

/* Destroys the context, or leaves that to its last block. Takes the lock over. */
static bool end(hak_wasm_tenant *tenant, bool whatever_lives)
{
    hak_wasm_host *host = tenant->host;
    tenant->closed = true;
    bool gone = whatever_lives || is_empty(tenant);
    if (!gone || atomic_load(&tenant->refs) > 1) {
        pthread_mutex_lock(&host->lock);
        tenant->listed = true;
        tenant->next = host->retired;
        host->retired = tenant;
        pthread_mutex_unlock(&host->lock);
    }
    if (gone) destroy_context(tenant);
    else pthread_mutex_unlock(&tenant->lock);
    return gone;
}

bool hkw_tenant_end(hak_wasm_tenant *tenant)
{
    pthread_mutex_lock(&tenant->lock);
    return end(tenant, false);
}

void hak_wasm_tenant_close(hak_wasm_tenant *tenant, hak_wasm_close how)
{
    hak_wasm_host *host = tenant ? tenant->host : NULL;
    if (!tenant || tenant == host->root) return;
    if (how == HAK_WASM_BULK) {
        while (tenant->memories)
            hkw_memory_end(host, tenant->memories);
        hak_wasm_uncharge(tenant, atomic_load(&tenant->own_charged));
        while (atomic_load(&tenant->own_instances))
            hak_wasm_dismiss(tenant);
    }
    pthread_mutex_lock(&tenant->lock);
    /* What one tenant's profile knows, the next one is not to see. */
    if (how == HAK_WASM_RETIRE && !atomic_load(&tenant->profile) && seems_empty(tenant) &&
        atomic_load(&tenant->refs) == 1) {
        pthread_mutex_unlock(&tenant->lock); /* it is the caller's alone */
        if (hkw_spare_give(tenant)) return;
        pthread_mutex_lock(&tenant->lock);
    }
    end(tenant, how == HAK_WASM_BULK);
}

/* Whether the heap of the tenant or of a parent is at its limit, hard or soft. */
static bool is_full(hak_wasm_tenant *tenant)
{
    for (hak_wasm_tenant *at = tenant; at; at = at->parent) {
        size_t limit = atomic_load_explicit(&at->heap_limit, memory_order_relaxed), used;
        if (!limit) continue;
        if (at->quota) {
            used = hak_quota_used(at->quota);
        } else {
            hak_stats stats;
            stats.size = sizeof stats;
            pthread_mutex_lock(&at->lock);
            hak_ctx_stats(at->ctx, &stats);
            /* What is only kept for later does not count. */
            if (stats.committed_bytes >= limit && hak_ctx_flush(at->ctx) > 0) hak_ctx_stats(at->ctx, &stats);
            pthread_mutex_unlock(&at->lock);
            used = stats.committed_bytes;
        }
        if (used >= limit) return true;
    }
    return false;
}

int hak_wasm_admit(hak_wasm_tenant *tenant)
{
    if (is_full(tenant)) {
        atomic_fetch_add_explicit(&tenant->account[HKW_INSTANCES].refused, 1, memory_order_relaxed);
        return -1;
    }
    if (!hkw_reserve(tenant, HKW_INSTANCES, 1)) return -1;
    hkw_keep(tenant, HKW_INSTANCES, 1);
    atomic_fetch_add_explicit(&tenant->own_instances, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tenant->refs, 1, memory_order_relaxed);
    return 0;
}

void hak_wasm_dismiss(hak_wasm_tenant *tenant)
{
    if (hkw_lower(&tenant->own_instances, 1) == 0) return; /* none was admitted */
    hkw_uncharge(tenant, HKW_INSTANCES, 1);
    hkw_tenant_unref(tenant);
}
