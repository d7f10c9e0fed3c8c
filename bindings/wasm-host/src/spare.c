/* Closed tenants whose contexts are empty, for the next ones: a context that is warm costs far less than a
 * new one. */
#include "tenant.h"

/* Bytes that a spare may hold on to; spares for each group of threads; every so many closes of a context its
 * committed bytes are counted, also when it does not look large. */
enum { SPARE_BYTES = 1 << 20, SPARES = 32, LOOK_EVERY = 16 };

void hk_wasm_spares_init(hak_wasm_host *host)
{
    for (size_t i = 0; i < HK_WASM_SHARDS; i++)
        pthread_mutex_init(&host->spare[i].lock, NULL);
}

bool hk_wasm_spare_give(hak_wasm_tenant *tenant)
{
    hak_wasm_host *host = tenant->host;
    if (tenant->quota || tenant->parent != host->root || host->slots.warm_limit == 0) return false;
    if (tenant->closes++ % LOOK_EVERY == 0 || hak_ctx_live_bytes(tenant->ctx) > SPARE_BYTES)
        tenant->committed = hk_wasm_tenant_committed(tenant);
    if (tenant->committed > SPARE_BYTES) return false;
    hk_wasm_spares *spares = &host->spare[hk_wasm_shard_number()];
    pthread_mutex_lock(&spares->lock);
    bool room = spares->count < SPARES;
    if (room) {
        tenant->epoch = atomic_load_explicit(&host->slots.epoch, memory_order_relaxed);
        tenant->next = spares->first;
        spares->first = tenant;
        spares->count++;
    }
    pthread_mutex_unlock(&spares->lock);
    return room;
}

/* Whether what the context has committed already leaves most of the limit to the next tenant. */
static bool fits(const hak_wasm_tenant *tenant, size_t limit)
{
    return limit == 0 || limit >= 4 * SPARE_BYTES || hk_wasm_tenant_committed(tenant) <= limit / 2;
}

hak_wasm_tenant *hk_wasm_spare_take(hak_wasm_host *host, const hak_wasm_limits *limits)
{
    hk_wasm_spares *spares = &host->spare[hk_wasm_shard_number()];
    pthread_mutex_lock(&spares->lock);
    hak_wasm_tenant *tenant = spares->first;
    if (tenant && !fits(tenant, limits->heap_bytes)) tenant = NULL;
    if (tenant) {
        spares->first = tenant->next;
        spares->count--;
    }
    pthread_mutex_unlock(&spares->lock);
    if (!tenant) return NULL;
    for (size_t i = 0; i < HK_WASM_ACCOUNTS; i++) {
        atomic_store_explicit(&tenant->account[i].peak, 0, memory_order_relaxed);
        atomic_store_explicit(&tenant->account[i].refused, 0, memory_order_relaxed);
    }
    tenant->failures = 0;
    return tenant;
}

size_t hk_wasm_spares_drop(hak_wasm_host *host, uint64_t before)
{
    size_t bytes = 0;
    for (size_t i = 0; i < HK_WASM_SHARDS; i++) {
        hk_wasm_spares *spares = &host->spare[i];
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
            if (hk_wasm_tenant_end(tenant)) bytes += committed;
        }
    }
    return bytes;
}

void hk_wasm_spares_destroy(hak_wasm_host *host)
{
    for (size_t i = 0; i < HK_WASM_SHARDS; i++)
        pthread_mutex_destroy(&host->spare[i].lock);
}
