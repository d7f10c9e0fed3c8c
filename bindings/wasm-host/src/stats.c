/* What hosts and tenants tell about themselves. */
#include "tenant.h"

static void count_slot(void *user, hk_wasm_slot *slot)
{
    hak_wasm_host_info *info = user;
    hk_wasm_state state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    info->warm += state == HK_WASM_WARM;
    if (!atomic_load_explicit(&slot->tenant, memory_order_relaxed)) return;
    info->live++;
    info->linear_bytes += atomic_load_explicit(&slot->size, memory_order_relaxed);
}

int hak_wasm_host_stats(hak_wasm_host *host, hak_wasm_host_info *info)
{
    hk_wasm_slots *s = &host->slots;
    if (info->size != sizeof *info) return -1;
    *info = (hak_wasm_host_info){
        .size = sizeof *info,
        .warm_bytes = atomic_load(&s->warm_bytes),
        .image_bytes = atomic_load(&host->image_bytes),
        .extents = atomic_load(&s->extents),
        .dirty = s->pages.method,
    };
    for (size_t i = 0; i < info->extents; i++) {
        info->slots += s->extent[i].slots;
        info->reserved_bytes += s->extent[i].reserved_size;
    }
    hk_wasm_slots_each(s, count_slot, info);
    return 0;
}

int hak_wasm_tenant_stats(hak_wasm_tenant *tenant, hak_wasm_tenant_info *info)
{
    if (info->size != sizeof *info) return -1;
    hk_wasm_account *bytes = &tenant->account[HK_WASM_BYTES],
                    *instances = &tenant->account[HK_WASM_INSTANCES];
    *info = (hak_wasm_tenant_info){
        .size = sizeof *info,
        .linear_bytes = atomic_load(&bytes->used),
        .linear_peak = atomic_load(&bytes->peak),
        .instances = atomic_load(&instances->used),
        .instances_peak = atomic_load(&instances->peak),
        .linear_refused = atomic_load(&bytes->refused),
        .instances_refused = atomic_load(&instances->refused),
    };
    hak_label_info labels[HAK_WASM_LABELS];
    hak_stats stats;
    stats.size = sizeof stats;
    pthread_mutex_lock(&tenant->lock);
    hak_ctx_stats(tenant->ctx, &stats);
    hak_labels_stats(tenant->ctx, labels, HAK_WASM_LABELS);
    info->heap_failures = tenant->failures;
    pthread_mutex_unlock(&tenant->lock);
    for (size_t i = 0; i < HAK_WASM_LABELS; i++) {
        info->label[i].live_bytes = labels[i].live_bytes;
        info->label[i].live_blocks = labels[i].live_blocks;
    }
    info->label[HAK_WASM_LINEAR].live_bytes = atomic_load(&tenant->own_bytes);
    info->label[HAK_WASM_LINEAR].live_blocks = atomic_load(&tenant->own_memories);
    info->heap_live = stats.live_bytes;
    info->heap_committed = tenant->quota ? hak_quota_used(tenant->quota) : stats.committed_bytes;
    return 0;
}

struct residence {
    hk_wasm_slots *slots;
    hak_wasm_tenant *tenant;
    size_t bytes;
};

static void add_resident(void *user, hk_wasm_slot *slot)
{
    struct residence *r = user;
    if (atomic_load_explicit(&slot->tenant, memory_order_relaxed) != r->tenant) return;
    r->bytes += hk_wasm_pages_resident(&r->slots->pages, slot->base,
                                       atomic_load_explicit(&slot->size, memory_order_relaxed));
}

size_t hak_wasm_tenant_resident(hak_wasm_tenant *tenant)
{
    struct residence r = {&tenant->host->slots, tenant, 0};
    hk_wasm_slots_each(r.slots, add_resident, &r);
    return r.bytes;
}
