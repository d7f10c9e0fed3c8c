/* SQLite's allocator, SQLITE_CONFIG_MALLOC. SQLite does not say for which connection it allocates: the host
 * says it for the thread. What connections share, their files, is taken for the process. */
#include "sqlite_heap.h"

#include <hakmem/sites.h>
#include <string.h>

static hak_space *space;
static hak_ctx *process; /* shared: any thread */
static _Thread_local hak_ctx *current;

/* ---- What the memory is for ---------------------------------------------------------------------------- */

/* What is in no rule, such as sqlite3DbMallocRaw, takes memory for its callers. */
static const hak_site_rule RULES[] = {
    {"pcache1", "page"},
    {"sqlite3Bitvec", "page"},
    {"sqlite3VdbeMem", "value"},
    {"sqlite3Value", "value"},
    {"valueNew", "value"},
    {"allocateCursor", "value"},
    {"sqlite3VdbeSorter", "sorter"},
    {"vdbeSorter", "sorter"},
    {"vdbePmaReader", "sorter"},
    {"vdbe", "statement"},
    {"sqlite3Vdbe", "statement"},
    {"growOp", "statement"},
    {"sqlite3Expr", "statement"},
    {"sqlite3Prepare", "statement"},
    {"sqlite3LockAndPrepare", "statement"},
    {"sqlite3RunParser", "statement"},
    {"sqlite3Select", "statement"},
    {"sqlite3Src", "statement"},
    {"sqlite3Where", "statement"},
    {"sqlite3KeyInfo", "statement"},
    {"sqlite3StartTable", "schema"},
    {"sqlite3EndTable", "schema"},
    {"sqlite3AddColumn", "schema"},
    {"sqlite3AllocateIndexObject", "schema"},
    {"sqlite3CreateIndex", "schema"},
    {"sqlite3Schema", "schema"},
    {"sqlite3HashInsert", "schema"},
    {"sqlite3CreateView", "schema"},
    {"sqlite3Trigger", "schema"},
    {"fts", "extension"},
    {"sqlite3Fts", "extension"},
    {"rtree", "extension"},
    {"openDatabase", "connection"},
    {"sqlite3Btree", "connection"},
    {"sqlite3Pager", "connection"},
    {"sqlite3CreateFunc", "connection"},
    {"sqlite3FindFunction", "connection"},
    {"createCollation", "connection"},
    {"unix", "file"},
};
static hak_sites *sites;

/* ---- The allocator ------------------------------------------------------------------------------------- */

static void *take(int n)
{
    hak_ctx *heap = current ? current : process;
    return hak_alloc_cs(heap, (size_t)n, hak_sites_label(sites, HAK_SITES_SP()), 0);
}

/* Who frees may be at work for another connection: the heap is the block's. */
static void give(void *p)
{
    hak_space_free(space, p);
}

static void *resize(void *p, int n)
{
    return hak_realloc(hak_ctx_of(space, p), p, (size_t)n);
}

static int size_of(void *p)
{
    return (int)hak_block_size(hak_ctx_of(space, p), p);
}

static int round_up(int n)
{
    return (int)hak_good_size(process, (size_t)n);
}

static int begin(void *user)
{
    (void)user;
    return SQLITE_OK;
}

static void end(void *user)
{
    (void)user;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* SQLite's own functions for files, called with the heap of the process. Connections to one file share what it
 * has of that file, and the last one frees it. */
static sqlite3_vfs *system_files, files;
/* Of each kind of file: SQLite's methods, and the same with one changed. */
enum { KINDS = 8 };
static struct {
    const sqlite3_io_methods *system;
    sqlite3_io_methods ours;
} kinds[KINDS];

static int map_shared(sqlite3_file *file, int region, int bytes, int extend, void volatile **p)
{
    const sqlite3_io_methods *ours = file->pMethods;
    hak_ctx *before = sqlite_heap_use(NULL);
    int status = SQLITE_IOERR_SHMMAP;
    for (int i = 0; i < KINDS; i++)
        if (ours == &kinds[i].ours) status = kinds[i].system->xShmMap(file, region, bytes, extend, p);
    sqlite_heap_use(before);
    return status;
}

/* One kind for each of the few ways to lock a file. */
static const sqlite3_io_methods *with_map_shared(const sqlite3_io_methods *system)
{
    if (!system || system->iVersion < 2 || !system->xShmMap) return system;
    sqlite3_mutex *lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(lock);
    int i = 0;
    while (i < KINDS - 1 && kinds[i].system && kinds[i].system != system)
        i++;
    if (!kinds[i].system) {
        kinds[i].ours = *system;
        kinds[i].ours.xShmMap = map_shared;
        kinds[i].system = system;
    }
    sqlite3_mutex_leave(lock);
    return kinds[i].system == system ? &kinds[i].ours : system;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    hak_ctx *before = sqlite_heap_use(NULL);
    int status = system_files->xOpen(vfs, name, file, flags, out);
    sqlite_heap_use(before);
    if (status == SQLITE_OK) file->pMethods = with_map_shared(file->pMethods);
    return status;
}

/* ---- The host's side ----------------------------------------------------------------------------------- */

static sqlite3_mem_methods own; /* SQLite's */

int sqlite_heap_start(hak_space *where, bool labels)
{
    static const sqlite3_mem_methods methods = {take, give, resize, size_of, round_up, begin, end, NULL};
    hak_sites_options by = HAK_SITES_OPTIONS_INIT;
    hak_options options = HAK_OPTIONS_INIT;
    by.rules = RULES;
    by.rule_count = sizeof RULES / sizeof *RULES;
    if (labels) sites = hak_sites_new(&by);
    options.name = "SQLite";
    options.labels = hak_sites_labels(sites, &options.label_count);
    options.shared = true;
    space = where;
    process = hak_ctx_new(space, &options);
    if (!process) return SQLITE_NOMEM;
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &own);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* no count, and no lock around each allocation */
    int status = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    if (status == SQLITE_OK) status = sqlite3_initialize();
    if (status == SQLITE_OK) {
        system_files = sqlite3_vfs_find(NULL);
        files = *system_files;
        files.zName = "hakmem";
        files.xOpen = open_file;
        status = sqlite3_vfs_register(&files, 1);
    }
    if (status != SQLITE_OK) sqlite_heap_end();
    return status;
}

void sqlite_heap_end(void)
{
    if (system_files) sqlite3_vfs_unregister(&files);
    system_files = NULL;
    memset(kinds, 0, sizeof kinds);
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_MALLOC, &own);
    hak_ctx_destroy(process);
    hak_sites_delete(sites);
    process = NULL;
    sites = NULL;
}

hak_ctx *sqlite_heap_new(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = "connection";
    options.labels = hak_sites_labels(sites, &options.label_count);
    options.workload = HAK_WORKLOAD_MALLOC;
    return hak_ctx_new(space, &options);
}

hak_ctx *sqlite_heap_use(hak_ctx *heap)
{
    hak_ctx *before = current;
    current = heap;
    return before;
}

hak_ctx *sqlite_heap_current(void)
{
    return current;
}

void sqlite_heap_retire(hak_ctx *heap)
{
    if (current == heap) current = NULL;
    hak_ctx_retire(heap);
}

void sqlite_heap_drop(hak_ctx *heap)
{
    if (current == heap) current = NULL;
    hak_ctx_destroy(heap);
}

hak_ctx *sqlite_heap_process(void)
{
    return process;
}
