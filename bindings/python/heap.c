#include "heap.h"

#include "domains.h"
#include "interpreters.h"
#include "provider.h"
#include "resident.h"

#include <pthread.h>

static hak_inline_bin no_bins[HAK_INLINE_EIGHTS / 8];
hak_inline_ctx hk_py_no_heap = {.bins = no_bins};
_Thread_local hak_ctx *hk_py_mine = hk_py_none;
_Thread_local void *hk_py_foreign;

static hak_ctx *_Atomic context;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t farewell;

static void before_fork(void)
{
    hak_ctx_fork_prepare(context);
}

static void after_fork(void)
{
    hak_ctx_fork_parent(context);
}

static void in_child(void)
{
    hak_ctx_fork_child(context);
    hk_py_counts_in_child();
}

/* Only a free comes here with a pointer of others: the other hooks ask first. A lock may be held, so that the
 * block is left for the hook to pass on. */
static void on_error(void *user, hak_error error, const void *p, const char *what)
{
    (void)user, (void)what;
    if (error == HAK_E_FOREIGN) hk_py_foreign = (void *)(uintptr_t)p;
}

/* The thread ends. It may come back here: other libraries say farewell later. */
static void leave(void *unused)
{
    (void)unused;
    hk_py_mine = hk_py_none;
    hk_py_counts_leave();
    hak_ctx_thread_done(context);
}

static bool small_blocks;

static void create(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    options.name = "python";
    options.shared = true;
    options.counted = true;
    /* Buffers of all sizes come once, or seldom. */
    options.magazine = 128;
    options.magazine_most = 4096;
    options.packed_bytes = HAK_NONE;
    /* The head of an object that the collector tracks is 16 bytes: the object begins a cache line. */
    options.phase = 48;
    options.on_error = on_error;
    hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
    pages.os = hk_py_noted_os();
    /* Others in the process have memory of their own: what is not in use here would add to theirs. Of arenas
     * that pymalloc gives back, one and a little is wanted at once. */
    pages.idle_bytes = small_blocks ? 4 << 20 : 3 << 19;
    pages.lean = true;
    /* A table of 2 MiB and what labels add to it. */
    options.big_cache = (2 << 20) + 4096;
    hak_space *space = hak_space_new(&pages);
    hak_ctx *ctx = space && pthread_key_create(&farewell, leave) == 0 ? hak_ctx_new(space, &options) : NULL;
    if (!ctx) return;
    pthread_atfork(before_fork, after_fork, in_child);
    context = ctx;
}

hak_ctx *hk_py_ctx(void)
{
    pthread_once(&once, create);
    return context;
}

hak_ctx *hk_py_ctx_for(bool all)
{
    small_blocks = all;
    return hk_py_ctx();
}

hak_ctx *hk_py_heap_find(void)
{
    hk_py_counts_take();
    hak_ctx *heap = hak_ctx_thread(context);
    if (!heap) return context;
    hk_py_mine = heap;
    pthread_setspecific(farewell, heap);
    return heap;
}

int hk_py_stats(hak_stats *stats)
{
    return hk_py_ctx() ? hak_ctx_stats(context, stats) : -1;
}

const char *const hk_py_domain_names[HK_PY_DOMAINS] = {"raw", "mem", "obj", "arena"};
static _Atomic int labels_begun;

bool hk_py_labels_begin(void)
{
    if (labels_begun) return true;
    if (!hk_py_ctx()) return false;
    hk_py_interpreters_ask();
    for (int d = 0; d < HK_PY_DOMAINS; d++)
        if (hak_label_define(context, hk_py_domain_names[d]) == 0) return false;
    labels_begun = 1;
    return true;
}

/* Blocks without a label go to their domains. */
static void share(hak_label_info *of)
{
    hak_label_info *rest = &of[HK_PY_DOMAIN_LABEL(HK_PY_OBJ)];
    for (int d = 0; d < HK_PY_DOMAINS; d++) {
        if (d == HK_PY_OBJ) continue;
        hk_py_amount c = hk_py_counts_sum((hk_py_domain)d);
        if (c.bytes > of->live_bytes || c.blocks > of->live_blocks)
            c = (hk_py_amount){of->live_bytes, of->live_blocks};
        of[HK_PY_DOMAIN_LABEL(d)].live_bytes += c.bytes;
        of[HK_PY_DOMAIN_LABEL(d)].live_blocks += c.blocks;
        of->live_bytes -= c.bytes;
        of->live_blocks -= c.blocks;
    }
    rest->live_bytes += of->live_bytes;
    rest->live_blocks += of->live_blocks;
    of->live_bytes = of->live_blocks = 0;
}

int hk_py_labels(hak_label_info out[HAK_LABELS_MAX + 1])
{
    if (!hk_py_ctx()) return 0;
    int n = hak_labels_stats(context, out, HAK_LABELS_MAX + 1);
    for (; n <= HK_PY_DOMAINS; n++)
        out[n] = (hak_label_info){.name = hk_py_domain_names[n - 1], .label = (hak_label)n};
    if (hk_py_provider_current() == &hk_py_provider_off) share(out);
    return n;
}

int hk_py_visit(hak_visit_fn *fn, void *user)
{
    return hk_py_ctx() ? hak_ctx_visit(context, fn, user) : 0;
}

bool hk_py_owns(const void *p)
{
    hak_ctx *ctx = context;
    return ctx && hak_owns(ctx, p);
}

bool hk_py_is_block(const void *p)
{
    hak_ctx *ctx = context;
    return ctx && hak_usable_size(ctx, p) > 0;
}

hak_label hk_py_label_define(const char *name)
{
    return hk_py_labels_begin() ? hak_label_define(context, name) : 0;
}

size_t hk_py_trim(void)
{
    return hk_py_ctx() ? hak_ctx_trim(context) : 0;
}

void hk_py_peak_reset(void)
{
    if (hk_py_ctx()) hak_ctx_peak_reset(context);
}

int hk_py_limit(size_t soft, size_t hard, hak_pressure_fn *fn, void *user)
{
    return hk_py_ctx() ? hak_limit(context, soft, hard, fn, user) : -1;
}
