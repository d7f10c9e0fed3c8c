/* The descriptors of an instance, by WAMR's private headers. */
#include "wasm_runtime.h"

#include "posix.h"
#include "refcount.h"
#include "wasm_native.h"
#include "wasm_runtime_common.h"
#include "wasmtime_ssp.h"

#include "guest.h"

#include <pthread.h>
#include <string.h>

/* An entry of WAMR's table of descriptors: an object, which begins with a count, and two masks of rights. */
typedef struct file {
    struct refcount *object;
    uint64_t rights, inheriting;
} file;

/* With a reference to each object: no other one can get its address and pass for it. */
struct hkw_wamr_files {
    struct fd_table table;
    struct fd_prestats dirs; /* names of those that the host opened */
};

static WASIContext *wasi_of(wasm_module_inst_t instance)
{
    return wasm_runtime_get_wasi_ctx((WASMModuleInstanceCommon *)instance);
}

static const struct fd_table *table_of(wasm_module_inst_t instance)
{
    WASIContext *wasi = wasi_of(instance);
    return wasi ? wasi->curfds : NULL;
}

static const file *files_of(const struct fd_table *table)
{
    return (const file *)(const void *)table->entries;
}

size_t hkw_wamr_files_size(wasm_module_inst_t instance)
{
    const struct fd_table *table = table_of(instance);
    return table ? table->size * sizeof(file) : 0;
}

void hkw_wamr_files_save(wasm_module_inst_t instance, void *files)
{
    const struct fd_table *table = table_of(instance);
    if (table && table->size) memcpy(files, files_of(table), table->size * sizeof(file));
}

static bool are_alike(const file *a, const file *b)
{
    if (!a->object || !b->object) return a->object == b->object;
    return a->rights == b->rights && a->inheriting == b->inheriting;
}

bool hkw_wamr_files_alike(wasm_module_inst_t instance, const void *table, size_t size)
{
    const file *then = table;
    if (hkw_wamr_files_size(instance) != size) return false;
    for (size_t i = 0; i < size / sizeof(file); i++)
        if (!are_alike(&files_of(table_of(instance))[i], &then[i])) return false;
    return true;
}

/* The name of a directory that the host opened under this number; NULL = none. */
static const char *name_at(const struct fd_prestats *dirs, size_t number)
{
    const char *const *names = (const char *const *)(const void *)dirs->prestats;
    return number < dirs->size ? names[number] : NULL;
}

bool hkw_wamr_files_hold(wasm_module_inst_t instance, hkw_wamr_files **out)
{
    const struct fd_table *now = table_of(instance);
    *out = NULL;
    if (!now) return true;
    hkw_wamr_files *files = wasm_runtime_malloc(sizeof *files);
    if (!files) return false;
    if (!fd_table_init(&files->table) || !fd_prestats_init(&files->dirs)) {
        wasm_runtime_free(files);
        return false;
    }
    file *entries = wasm_runtime_malloc((uint32)(now->size * sizeof(file)));
    bool ok = entries;
    if (ok) {
        memcpy(entries, files_of(now), now->size * sizeof(file));
        for (size_t i = 0; i < now->size; i++)
            if (entries[i].object) refcount_acquire(entries[i].object);
        files->table.entries = (struct fd_entry *)(void *)entries;
        files->table.size = now->size;
        files->table.used = now->used;
    }
    const struct fd_prestats *dirs = wasi_of(instance)->prestats;
    for (size_t i = 0; ok && i < dirs->size; i++)
        if (name_at(dirs, i)) ok = fd_prestats_insert(&files->dirs, name_at(dirs, i), (__wasi_fd_t)i);
    if (ok) *out = files;
    else hkw_wamr_files_release(files);
    return ok;
}

void hkw_wamr_files_release(hkw_wamr_files *files)
{
    if (!files) return;
    fd_table_destroy(&files->table);
    fd_prestats_destroy(&files->dirs);
    wasm_runtime_free(files);
}

bool hkw_wamr_files_same(wasm_module_inst_t instance, const hkw_wamr_files *files)
{
    const struct fd_table *now = table_of(instance);
    if (!now || !files) return !now && !files;
    if (now->size != files->table.size || now->used != files->table.used) return false;
    for (size_t i = 0; i < now->size; i++) {
        const file *a = &files_of(now)[i], *b = &files_of(&files->table)[i];
        if (a->object != b->object || !are_alike(a, b)) return false;
    }
    const struct fd_prestats *dirs = wasi_of(instance)->prestats;
    for (size_t i = 0; i < dirs->size || i < files->dirs.size; i++) {
        const char *a = name_at(dirs, i), *b = name_at(&files->dirs, i);
        if (!a != !b || (a && strcmp(a, b) != 0)) return false;
    }
    return true;
}

/* ---- Renumbering ---------------------------------------------------------------------------------- */

/* WAMR's own follows NULL where a guest renumbers a descriptor to itself, and counts the table's descriptors
 * too low: WAMR then looks for ever for a free number in one that is full. A guest would end or stop the
 * host. */
static __wasi_errno_t renumber(wasm_exec_env_t env, __wasi_fd_t from, __wasi_fd_t to)
{
    WASIContext *wasi = wasm_runtime_get_wasi_ctx(wasm_runtime_get_module_inst(env));
    if (!wasi) return __WASI_EBADF;
    struct fd_table *table = wasi->curfds;
    __wasi_errno_t error = 0;
    if (from != to) error = wasmtime_ssp_fd_renumber(env, table, wasi->prestats, from, to);
    rwlock_wrlock(&table->lock);
    if (from == to && (from < 0 || (size_t)from >= table->size || !files_of(table)[from].object))
        error = __WASI_EBADF;
    table->used = 0;
    for (size_t i = 0; i < table->size; i++)
        table->used += files_of(table)[i].object != NULL;
    rwlock_unlock(&table->lock);
    return error;
}

/* WAMR's own function of the name; NULL = it has none. */
static void *own(const char *name)
{
    uint32 get_libc_wasi_export_apis(NativeSymbol * *symbols);
    NativeSymbol *symbols;
    uint32 count = get_libc_wasi_export_apis(&symbols);
    for (uint32 i = 0; i < count; i++)
        if (strcmp(symbols[i].symbol, name) == 0) return symbols[i].func_ptr;
    return NULL;
}

bool hkw_wamr_files_begin(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static NativeSymbol symbols[] = {{"fd_renumber", NULL, "(ii)i", NULL}};
    static const char *const modules[] = {"wasi_snapshot_preview1", "wasi_unstable"};
    bool ok = true;
    hak_wasm_scope before = hak_wasm_enter(NULL, HAK_WASM_OTHER); /* WAMR's list is no tenant's */
    pthread_mutex_lock(&lock);
    /* WAMR's table has object pointers, whatever the functions' types are. */
    __wasi_errno_t (*const function)(wasm_exec_env_t, __wasi_fd_t, __wasi_fd_t) = renumber;
    memcpy(&symbols->func_ptr, &function, sizeof function);
    /* WAMR is asked, since it forgets when it ends; one of the host's own stays. */
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (wasm_native_resolve_symbol(modules[i], symbols->symbol, NULL, NULL, NULL, NULL) ==
            own(symbols->symbol))
            ok = wasm_runtime_register_natives(modules[i], symbols, 1) && ok;
    pthread_mutex_unlock(&lock);
    hak_wasm_leave(before);
    return ok;
}
