/* The current tenant of each thread, and blocks in the tenants' contexts. */
#include "profile.h"

#include <string.h>

static _Thread_local hak_wasm_scope current;

hak_wasm_scope hak_wasm_enter(hak_wasm_tenant *tenant, hak_wasm_label label)
{
    hak_wasm_scope before = current;
    current = (hak_wasm_scope){tenant, label};
    return before;
}

void hak_wasm_leave(hak_wasm_scope before)
{
    current = before;
}

hak_wasm_scope hak_wasm_current(void)
{
    return current;
}

hak_wasm_tenant *hkw_tenant_current(hak_wasm_host *host)
{
    return current.tenant && current.tenant->host == host ? current.tenant : host->root;
}

static hak_ctx *lock(hak_wasm_tenant *tenant)
{
    pthread_mutex_lock(&tenant->lock);
    return tenant->ctx;
}

static void unlock(hak_wasm_tenant *tenant)
{
    pthread_mutex_unlock(&tenant->lock);
}

/* Counts a new block, or its failure, and unlocks. */
static void *count_block(hak_wasm_tenant *tenant, void *p)
{
    if (p) tenant->blocks++;
    else tenant->failures++;
    unlock(tenant);
    return p;
}

/* The tenant in whose context p is; NULL = none. */
static hak_wasm_tenant *owner(const hak_wasm_host *host, const void *p)
{
    const hak_ctx *ctx = hak_ctx_of(host->space, p);
    return ctx ? hak_ctx_user(ctx) : NULL;
}

void *hak_wasm_alloc(hak_wasm_host *host, size_t n)
{
    hak_wasm_tenant *tenant = hkw_tenant_current(host);
    return count_block(tenant, hak_alloc_cs(lock(tenant), n, (hak_label)current.label, HAK_CALLSITE()));
}

void *hak_wasm_calloc(hak_wasm_host *host, size_t count, size_t n)
{
    hak_wasm_tenant *tenant = hkw_tenant_current(host);
    return count_block(tenant,
                       hak_calloc_cs(lock(tenant), count, n, (hak_label)current.label, HAK_CALLSITE()));
}

void *hak_wasm_aligned_alloc(hak_wasm_host *host, size_t align, size_t n)
{
    hak_wasm_tenant *tenant = hkw_tenant_current(host);
    return count_block(
        tenant, hak_aligned_alloc_cs(lock(tenant), align, n, (hak_label)current.label, HAK_CALLSITE()));
}

void *hak_wasm_realloc(hak_wasm_host *host, void *p, size_t n)
{
    if (!p) return hak_wasm_alloc(host, n);
    hak_wasm_tenant *tenant = owner(host, p);
    if (!tenant) return NULL;
    hak_ctx *ctx = lock(tenant);
    hkw_profile *profile = atomic_load_explicit(&tenant->profile, memory_order_relaxed);
    if (profile) profile->site = HAK_CALLSITE();
    void *q = hak_realloc(ctx, p, n);
    tenant->failures += !q;
    unlock(tenant);
    return q;
}

void hak_wasm_free(hak_wasm_host *host, void *p)
{
    hak_wasm_tenant *tenant = p ? owner(host, p) : NULL;
    if (!tenant) return;
    hak_free(lock(tenant), p);
    tenant->blocks--;
    hkw_tenant_unlock(tenant);
}

size_t hak_wasm_usable_size(hak_wasm_host *host, const void *p)
{
    hak_wasm_tenant *tenant = p ? owner(host, p) : NULL;
    if (!tenant) return 0;
    size_t n = hak_usable_size(lock(tenant), p);
    unlock(tenant);
    return n;
}

bool hak_wasm_owns(const hak_wasm_host *host, const void *p)
{
    return hak_ctx_of(host->space, p);
}
