/* Closed tenants whose contexts are empty, for the next ones: a context that is warm costs far less than a
 * new one. Only where no heap limit holds, neither the next tenant's nor the host's: what a context has
 * committed, and what it has learned about sizes, decide how much fits under a limit. */
#include "tenant.h"

/* Bytes that a spare may hold on to; spares for each group of threads; every so many closes of a context its
 * committed bytes are counted, also when it does not look large. */
enum { SPARE_BYTES = 1 << 20, SPARES = 32, LOOK_EVERY = 16 };

void hkw_spares_init(hak_wasm_host *host)
{
    for (size_t i = 0; i < HKW_SHARDS; i++)
        pthread_mutex_init(&host->spare[i].lock, NULL);
}

bool hkw_spare_give(hak_wasm_tenant *tenant)
{
    hak_wasm_host *host = tenant->host;
    if (tenant->quota || tenant->parent != host->root || host->slots.warm_limit == 0) return false;
    if (tenant->closes++ % LOOK_EVERY == 0 || hak_ctx_live_bytes(tenant->ctx) > SPARE_BYTES)
        tenant->committed = hkw_tenant_committed(tenant);
    if (tenant->committed > SPARE_BYTES) return false;
    hkw_spares *spares = &host->spare[hkw_shard_number()];
    pthread_mutex_lock(&spares->lock);
    /* Here, under the lock, so that hkw_spares_drop after a new limit misses none. */
    bool room = spares->count < SPARES && atomic_load(&host->root->heap_limit) == 0;
    if (room) {
        tenant->epoch = atomic_load_explicit(&host->slots.epoch, memory_order_relaxed);
        tenant->next = spares->first;
        spares->first = tenant;
        spares->count++;
    }
    pthread_mutex_unlock(&spares->lock);
    return room;
}

hak_wasm_tenant *hkw_spare_take(hak_wasm_host *host, const hak_wasm_limits *limits)
{
    if (limits->heap_bytes || atomic_load(&host->root->heap_limit)) return NULL;
    hkw_spares *spares = &host->spare[hkw_shard_number()];
    pthread_mutex_lock(&spares->lock);
    hak_wasm_tenant *tenant = spares->first;
    if (tenant) {
        spares->first = tenant->next;
        spares->count--;
    }
    pthread_mutex_unlock(&spares->lock);
    if (!tenant) return NULL;
    for (size_t i = 0; i < HKW_ACCOUNTS; i++) {
        atomic_store_explicit(&tenant->account[i].peak, 0, memory_order_relaxed);
        atomic_store_explicit(&tenant->account[i].refused, 0, memory_order_relaxed);
    }
    hak_wasm_tenant_modules(tenant, NULL);
    hak_wasm_tenant_steps(tenant, 0);
    tenant->failures = tenant->heap_peak = 0;
    hak_ctx_peak_reset(tenant->ctx);
    tenant->at_hand = hak_ctx_live_bytes(tenant->ctx); /* it is empty: all of that is in magazines */
    return tenant;
}

size_t hkw_spares_drop(hak_wasm_host *host, uint64_t before)
{
    size_t bytes = 0;
    for (size_t i = 0; i < HKW_SHARDS; i++) {
        hkw_spares *spares = &host->spare[i];
        hak_wasm_tenant *out = NULL;
        pthread_mutex_lock(&spares->lock);
        for (hak_wasm_tenant **at = &spares->first; *at;) {
            hak_wasm_tenant *tenant = *at;
            if (tenant->epoch >= before) {
                at = &tenant->next;
                continue;
            }
            *at = tenant->next;
            spares->count--;
            tenant->next = out;
            out = tenant;
        }
        pthread_mutex_unlock(&spares->lock);
        while (out) {
            hak_wasm_tenant *tenant = out;
            out = tenant->next;
            size_t committed = tenant->committed;
            if (hkw_tenant_end(tenant)) bytes += committed;
        }
    }
    return bytes;
}

void hkw_spares_destroy(hak_wasm_host *host)
{
    for (size_t i = 0; i < HKW_SHARDS; i++)
        pthread_mutex_destroy(&host->spare[i].lock);
}
