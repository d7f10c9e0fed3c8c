/* What hosts and tenants tell about themselves. */
#include "stats.h"

#include "tenant.h"

#include <string.h>

static void count_slot(void *user, hkw_slot *slot)
{
    hak_wasm_host_info *info = user;
    hkw_state state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    info->warm += state == HKW_WARM;
    if (!atomic_load_explicit(&slot->tenant, memory_order_relaxed)) return;
    info->live++;
    info->resting += atomic_load_explicit(&slot->rest, memory_order_relaxed) != HKW_AWAKE;
    info->linear_bytes += atomic_load_explicit(&slot->size, memory_order_relaxed);
}

int hkw_tell(void *out, const void *info, size_t known)
{
    enum { TAIL_MOST = 4096 };
    size_t size = 0;
    if (out) memcpy(&size, out, sizeof size);
    if (size < sizeof size || (size > known && size - known > TAIL_MOST)) return -1;
    if (size > known) memset((char *)out + known, 0, size - known);
    memcpy(out, info, size < known ? size : known);
    memcpy(out, &size, sizeof size);
    return 0;
}

int hak_wasm_host_stats(hak_wasm_host *host, hak_wasm_host_info *out)
{
    hkw_slots *s = &host->slots;
    hak_wasm_host_info whole, *info = &whole;
    *info = (hak_wasm_host_info){
        .size = sizeof *info,
        .warm_bytes = atomic_load(&s->warm_bytes),
        .image_bytes = atomic_load(&host->image_bytes),
        .extents = atomic_load(&s->extents),
        .dirty = s->pages.method,
        .mappings = atomic_load(&s->mappings.used),
    };
    for (size_t i = 0; i < info->extents; i++) {
        info->slots += s->extent[i].slots;
        info->reserved_bytes += s->extent[i].reserved_size;
    }
    hkw_slots_each(s, count_slot, info);
    return hkw_tell(out, info, sizeof *info);
}

struct residence_sum {
    hkw_slots *slots;
    hkw_residence sum;
};

static void add_residence(void *user, hkw_slot *slot)
{
    struct residence_sum *all = user;
    const size_t own = hkw_pages_resident(&all->slots->pages, slot->base,
                                          atomic_load_explicit(&slot->size, memory_order_relaxed));
    all->sum.own += own;
    all->sum.proportional += own + hkw_slot_share(all->slots, slot);
}

hkw_residence hkw_tenant_residence(hak_wasm_tenant *tenant)
{
    struct residence_sum all = {&tenant->host->slots, {0, 0}};
    hkw_memories_each(tenant, add_residence, &all);
    return all.sum;
}

/* Whether the caller's struct, of whatever version, has room for the residence: without it nobody passes over the
 * page tables. */
static bool asks_for_residence(const hak_wasm_tenant_info *out)
{
    size_t size = 0;
    if (out) memcpy(&size, out, sizeof size);
    return size > offsetof(hak_wasm_tenant_info, linear_resident);
}

int hak_wasm_tenant_stats(hak_wasm_tenant *tenant, hak_wasm_tenant_info *out)
{
    hak_wasm_tenant_info whole, *info = &whole;
    hkw_account *bytes = &tenant->account[HKW_BYTES], *instances = &tenant->account[HKW_INSTANCES];
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
    info->label[HAK_WASM_LINEAR].live_bytes = atomic_load(&tenant->own_bytes) +
                                              atomic_load(&tenant->own_charged) +
                                              atomic_load(&tenant->own_images);
    info->label[HAK_WASM_LINEAR].live_blocks = atomic_load(&tenant->own_memories);
    info->image_bytes = atomic_load(&tenant->own_images);
    info->heap_live = stats.live_bytes;
    info->heap_committed = tenant->quota ? hak_quota_used(tenant->quota) : stats.committed_bytes;
    if (asks_for_residence(out)) {
        const hkw_residence linear = hkw_tenant_residence(tenant);
        info->linear_resident = linear.own;
        info->linear_proportional = linear.proportional;
    }
    return hkw_tell(out, info, sizeof *info);
}

size_t hak_wasm_tenant_resident(hak_wasm_tenant *tenant)
{
    return hkw_tenant_residence(tenant).own;
}

size_t hak_wasm_tenant_proportional(hak_wasm_tenant *tenant)
{
    return hkw_tenant_residence(tenant).proportional;
}
