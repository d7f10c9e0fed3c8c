/* Back to a moment: the memory by its image, the rest by copies. */
#include "guest.h"

#include <string.h>

struct hak_wasm_wamr_snapshot {
    hak_wasm_tenant *tenant;
    wasm_module_t module;
    uint64_t serial;       /* of the instance that it was taken of */
    hak_wasm_image *image; /* NULL = no memory */
    size_t state_size, files_size;
    uint64_t bytes[]; /* the state, then the files */
};

static void *files_of(hak_wasm_wamr_snapshot *snapshot)
{
    return (char *)snapshot->bytes + snapshot->state_size;
}

hak_wasm_wamr_snapshot *hak_wasm_wamr_take(hak_wasm_wamr *guest)
{
    if (!hk_wasm_wamr_copyable(guest->module)) return NULL;
    hak_wasm_host *host = hak_wasm_tenant_host(guest->tenant);
    size_t state = (hk_wasm_wamr_state_size(guest->instance) + 7) & ~(size_t)7;
    size_t files = hk_wasm_wamr_files_size(guest->instance);
    hak_wasm_scope before = hak_wasm_enter(guest->tenant, HAK_WASM_INSTANCE);
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_calloc(host, 1, sizeof *snapshot + state + files);
    hak_wasm_leave(before);
    if (!snapshot) return NULL;
    snapshot->tenant = guest->tenant;
    snapshot->module = guest->module;
    snapshot->serial = guest->serial;
    snapshot->state_size = state;
    snapshot->files_size = files;
    void *memory = hk_wasm_wamr_memory(guest->instance);
    if (memory && !(snapshot->image = hak_wasm_image_take(host, memory))) {
        hak_wasm_free(host, snapshot);
        return NULL;
    }
    hk_wasm_wamr_state_save(guest->instance, snapshot->bytes);
    hk_wasm_wamr_files_save(guest->instance, files_of(snapshot));
    return snapshot;
}

void hak_wasm_wamr_drop(hak_wasm_wamr_snapshot *snapshot)
{
    if (!snapshot) return;
    hak_wasm_image_drop(snapshot->image);
    hak_wasm_free(hak_wasm_tenant_host(snapshot->tenant), snapshot);
}

/* Another instance than the snapshot's must have the descriptors that it had when it was new. */
static bool files_are_back(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot)
{
    wasm_module_inst_t instance = guest->instance;
    bool same = guest->serial == snapshot->serial;
    return hk_wasm_wamr_files_equal(instance, files_of(snapshot), snapshot->files_size, same) &&
           (same || hk_wasm_wamr_files_equal(instance, guest->files, guest->files_size, true));
}

int hak_wasm_wamr_reset(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot)
{
    if (guest->module != snapshot->module) return -1;
    int how = 0;
    if (!files_are_back(guest, snapshot)) {
        char error[64];
        how = 1;
        hk_wasm_wamr_end(guest);
        if (!hk_wasm_wamr_begin(guest, error, sizeof error) || !files_are_back(guest, snapshot)) return -1;
    }
    hak_wasm_host *host = hak_wasm_tenant_host(guest->tenant);
    void *memory = hk_wasm_wamr_memory(guest->instance);
    if (snapshot->image) {
        if (!memory || hak_wasm_memory_reset(host, memory, snapshot->image) != 0) return -1;
        hk_wasm_wamr_set_memory_size(guest->instance, hak_wasm_image_size(snapshot->image));
    }
    wasm_runtime_clear_exception(guest->instance);
    hk_wasm_wamr_state_load(guest->instance, snapshot->bytes);
    return how;
}
