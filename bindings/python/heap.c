#include "heap.h"

#include "resident.h"

hak_ctx *hk_py_context;
pthread_mutex_t hk_py_mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *const domain_labels[HK_PY_DOMAINS] = {"raw", "mem", "obj", "arena"};

static void before_fork(void)
{
    pthread_mutex_lock(&hk_py_mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&hk_py_mutex);
}

/* Not an unlock: the owner that a mutex remembers is a thread of the parent. */
static void in_child(void)
{
    pthread_mutex_init(&hk_py_mutex, NULL);
}

static void create(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = "python";
    options.packed_bytes = HAK_NONE;
    /* The head of an object that the collector tracks is 16 bytes: the object begins a cache line. */
    options.phase = 48;
    options.labels = domain_labels;
    options.label_count = HK_PY_DOMAINS;
    hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
    pages.os = hk_py_noted_os();
    hak_space *space = hak_space_new(&pages);
    hk_py_context = space ? hak_ctx_new(space, &options) : NULL;
    if (hk_py_context) pthread_atfork(before_fork, after_fork, in_child);
}

hak_ctx *hk_py_ctx(void)
{
    pthread_once(&once, create);
    return hk_py_context;
}

int hk_py_stats(hak_stats *stats)
{
    if (!hk_py_ctx()) return -1;
    int result = hak_ctx_stats(hk_py_enter(), stats);
    hk_py_leave();
    return result;
}

int hk_py_labels(hak_label_info *out, size_t count)
{
    if (!hk_py_ctx()) return 0;
    int labels = hak_labels_stats(hk_py_enter(), out, count);
    hk_py_leave();
    return labels;
}

int hk_py_visit(hak_visit_fn *fn, void *user)
{
    if (!hk_py_ctx()) return 0;
    int result = hak_ctx_visit(hk_py_enter(), fn, user);
    hk_py_leave();
    return result;
}

bool hk_py_owns(const void *p)
{
    if (!hk_py_ctx()) return false;
    bool result = hak_owns(hk_py_enter(), p);
    hk_py_leave();
    return result;
}

hak_label hk_py_label_define(const char *name)
{
    if (!hk_py_ctx()) return 0;
    hak_label label = hak_label_define(hk_py_enter(), name);
    hk_py_leave();
    return label;
}

size_t hk_py_trim(void)
{
    if (!hk_py_ctx()) return 0;
    size_t bytes = hak_ctx_trim(hk_py_enter());
    hk_py_leave();
    return bytes;
}

int hk_py_limit(size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    if (!hk_py_ctx()) return -1;
    int result = hak_limit(hk_py_enter(), soft, hard, fn, user);
    hk_py_leave();
    return result;
}
