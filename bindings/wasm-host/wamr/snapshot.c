/* Back to a moment: the memory by its image, the rest by copies. */
#include "guest.h"

#include <string.h>

struct hak_wasm_wamr_snapshot {
    hak_wasm_tenant *tenant;
    wasm_module_t module;
    uint64_t serial;       /* of the instance that it was taken of */
    hak_wasm_image *image; /* NULL = no memory, or one without a page */
    hkw_wamr_files *files; /* NULL = those of a new instance */
    size_t state_size, files_size;
    uint64_t bytes[]; /* the state, then the files */
};

static void *files_of(hak_wasm_wamr_snapshot *snapshot)
{
    return (char *)snapshot->bytes + snapshot->state_size;
}

hak_wasm_wamr_snapshot *hak_wasm_wamr_take(hak_wasm_wamr *guest, const char **why)
{
    const char *unasked;
    if (!why) why = &unasked;
    *why = "it has a table or a global of external references";
    if (!hkw_wamr_copyable(guest->module)) return NULL;
    *why = "there is no memory for a snapshot, or it is over a limit of the tenant";
    hak_wasm_host *host = hak_wasm_tenant_host(guest->tenant);
    size_t state = (hkw_wamr_state_size(guest->instance) + 7) & ~(size_t)7;
    size_t files = hkw_wamr_files_size(guest->instance);
    hak_wasm_scope before = hak_wasm_enter(guest->tenant, HAK_WASM_INSTANCE);
    hak_wasm_wamr_snapshot *snapshot = hak_wasm_calloc(host, 1, sizeof *snapshot + state + files);
    bool ok = snapshot && (hkw_wamr_files_same(guest->instance, guest->files) ||
                           hkw_wamr_files_hold(guest->instance, &snapshot->files));
    if (!ok) {
        hak_wasm_leave(before);
        hak_wasm_free(host, snapshot);
        return NULL;
    }
    snapshot->tenant = guest->tenant;
    snapshot->module = guest->module;
    snapshot->serial = guest->serial;
    snapshot->state_size = state;
    snapshot->files_size = files;
    void *memory = hkw_wamr_memory(guest->instance);
    ok = !memory || (snapshot->image = hak_wasm_image_take(host, memory));
    hak_wasm_leave(before);
    if (!ok) {
        hak_wasm_wamr_drop(snapshot);
        return NULL;
    }
    hkw_wamr_state_save(guest->instance, snapshot->bytes);
    hkw_wamr_files_save(guest->instance, files_of(snapshot));
    *why = NULL;
    return snapshot;
}

void hak_wasm_wamr_drop(hak_wasm_wamr_snapshot *snapshot)
{
    if (!snapshot) return;
    hak_wasm_image_drop(snapshot->image);
    hkw_wamr_files_release(snapshot->files);
    hak_wasm_free(hak_wasm_tenant_host(snapshot->tenant), snapshot);
}

/* What a guest did to its descriptors before the snapshot, no other instance can have. */
static bool files_are_back(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot)
{
    wasm_module_inst_t instance = guest->instance;
    if (snapshot->files)
        return guest->serial == snapshot->serial && hkw_wamr_files_same(instance, snapshot->files);
    return hkw_wamr_files_same(instance, guest->files) &&
           hkw_wamr_files_alike(instance, files_of(snapshot), snapshot->files_size);
}

/* Size and content, also from and to a memory without a page, which has no slot. */
static bool memory_is_back(hak_wasm_wamr *guest, hak_wasm_image *image, bool rests)
{
    hak_wasm_host *host = hak_wasm_tenant_host(guest->tenant);
    void *memory = hkw_wamr_memory(guest->instance);
    if (!image) {
        if (!memory) return true;
        hkw_wamr_set_memory(guest->instance, NULL, 0);
        return hak_wasm_memory_free(host, memory) == 0;
    }
    if (!memory) {
        hak_wasm_scope before = hak_wasm_enter(guest->tenant, HAK_WASM_INSTANCE);
        memory = hak_wasm_memory_adopt(host, image);
        hak_wasm_leave(before);
        if (!memory) return false;
    } else if (!rests && hak_wasm_memory_reset(host, memory, image) != 0) {
        return false;
    }
    if (rests && hak_wasm_memory_rest(host, memory, image) != 0) return false;
    guest->rests = rests;
    hkw_wamr_set_memory(guest->instance, memory, hak_wasm_image_size(image));
    return true;
}

static int reset(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot, bool rests)
{
    if (!snapshot || guest->module != snapshot->module) return -1;
    int how = 0;
    if (!files_are_back(guest, snapshot)) {
        char error[64];
        how = 1;
        hkw_wamr_end(guest);
        if (!hkw_wamr_begin(guest, error, sizeof error) || !files_are_back(guest, snapshot)) return -1;
    }
    guest->rests = false;
    if (!memory_is_back(guest, snapshot->image, rests)) return -1;
    wasm_runtime_clear_exception(guest->instance);
    hkw_wamr_state_load(guest->instance, snapshot->bytes);
    return how;
}

int hak_wasm_wamr_reset(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot)
{
    return reset(guest, snapshot, false);
}

int hak_wasm_wamr_rest(hak_wasm_wamr *guest, hak_wasm_wamr_snapshot *snapshot)
{
    return reset(guest, snapshot, true);
}
