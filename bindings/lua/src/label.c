#include "label.h"

#include "calibrate.h"
#include "label_kind.h"
#include "label_site.h"
#include "profile/profile.h"
#include "profile/thread.h"
#include "shared.h"

#include <string.h>

struct hkl_labels {
    hak_label of_kind[HKL_KIND_COUNT];
    hak_label of_tag[HKL_TAGS]; /* 0 = look at the frames */
    hak_ctx *ctx;
};

#define KIND_NAME(name, text) text,
static const char *const kind_names[] = {HKL_KINDS(KIND_NAME)};

static void define_tags(hkl_labels *labels)
{
    for (size_t tag = 0; tag < HKL_TAGS; tag++) {
        hkl_kind kind = hkl_kind_of_tag(tag);
        labels->of_tag[tag] = kind == HKL_KIND_OTHER ? 0 : labels->of_kind[kind];
    }
}

hkl_labels *hkl_labels_new(hak_ctx *ctx)
{
    if (!hkl_calibrate()) return NULL;
    hak_label own = hak_label_define(ctx, kind_names[HKL_KIND_REGISTRY]);
    hkl_labels *labels = hak_alloc_cs(ctx, sizeof *labels, own, 0);
    if (!labels) return NULL;
    labels->ctx = ctx;
    for (int k = 0; k < HKL_KIND_COUNT; k++) {
        labels->of_kind[k] = hak_label_define(ctx, kind_names[k]);
        if (labels->of_kind[k] == 0) {
            hak_free(ctx, labels);
            return NULL;
        }
    }
    define_tags(labels);
    return labels;
}

void hkl_labels_delete(hkl_labels *labels)
{
    if (labels) hak_free(labels->ctx, labels);
}

hak_label hkl_labels_registry(const hkl_labels *labels)
{
    return labels->of_kind[HKL_KIND_REGISTRY];
}

hak_label hkl_labels_bounded(const hkl_labels *labels)
{
    return labels && hkl_thread_luajit() ? labels->of_kind[HKL_KIND_TRACE] : 0;
}

const char *hkl_labels_name(const char *name)
{
    const bool taken = hkl_thread_luajit() && strcmp(name, kind_names[HKL_KIND_TRACE]) == 0;
    return taken ? "trace (label)" : name;
}

hak_label hkl_labels_other(const hkl_labels *labels)
{
    return labels->of_kind[HKL_KIND_OTHER];
}

typedef struct origin {
    hak_label label; /* 0 = not in the cache */
    hak_site site;
} origin;

#ifdef HKC_CFI_WALK

/* Up from lua_Alloc to the first function that is no helper: one frame or two on average. */
static inline origin find(const hkl_labels *labels, hkc_cfi_place place)
{
    for (;;) {
        uintptr_t pc = hkc_cfi_return_at(place);
        uint64_t info = hkc_site_home(hkl_site_cache, HKL_SITE_SLOTS, pc);
        if (info < HKC_SITE_CLIMB) return (origin){labels->of_kind[info], pc};
        if (__builtin_expect(info > HKC_SITE_INFO, 0)) return (origin){0, 0};
        place = hkc_cfi_place_up(place, (info - HKC_SITE_CLIMB) * sizeof(uintptr_t));
    }
}

static origin find_slow(const hkl_labels *labels, hkc_cfi_place caller)
{
    hkc_cfi_place place = caller;
    for (;;) {
        uintptr_t pc = hkc_cfi_return_at(place);
        unsigned info = hkl_site_resolve(pc, caller);
        if ((info & HKC_SITE_CLIMB) == 0) return (origin){labels->of_kind[info], pc};
        place = hkc_cfi_place_up(place, (info & 0x7fff) * sizeof(uintptr_t));
    }
}

#else

typedef uintptr_t hkc_cfi_place;
#define HKC_CFI_SP_ABOVE() ((uintptr_t)HAK_CALLSITE())

static inline origin find(const hkl_labels *labels, uintptr_t site)
{
    return (origin){labels->of_kind[HKL_KIND_OTHER], site};
}

#define find_slow find

#endif

/* The parts below are not inlined, and called last, so that hkl_labels_alloc itself saves no registers. */
#define APART __attribute__((noinline)) static

APART void *release(hkl_state *st, void *ptr, size_t osize)
{
    return hkl_free(st, ptr, osize);
}

APART void *allocate_pressed(hkl_state *st, size_t nsize, hak_label label, hak_site site)
{
    if (hkl_is_strange(st, nsize, site)) return NULL;
    return hkl_new(st, nsize, label, site);
}

APART void *resize(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    return hkl_resize(st, ptr, osize, nsize, label, site);
}

/* Of a block that may move. */
APART void *resize_profiled(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label,
                            hak_site site)
{
    st->profile->site = site;
    const bool held = hkl_profile_hold(st, osize);
    void *p = hkl_resize(st, ptr, osize, nsize, label, site);
    if (held) hkl_profile_release(st);
    return p;
}

/* Most blocks are too small to lose the stack that asks. */
APART void *resize_sampled(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label,
                           hak_site site)
{
    if (__builtin_expect(osize >= HKL_PROFILE_MAY_MOVE, 0) && nsize > osize)
        return resize_profiled(st, ptr, osize, nsize, label, site);
    return hkl_resize(st, ptr, osize, nsize, label, site);
}

#ifdef HKC_CFI_WALK

/* The line is asked for first: a stack that moves is not to be looked at afterwards. */
APART void *allocate_counted(hkl_state *st, void *ptr, size_t osize, size_t nsize, hak_label label,
                             hak_site site)
{
    hkl_lines *lines = st->profile->lines;
    if (!ptr && hkl_is_strange(st, nsize, site)) return NULL;
    const unsigned line = ptr && nsize <= osize ? 0 : hkl_profile_line(st->profile, label, site);
    void *p = ptr ? hkl_resize(st, ptr, osize, nsize, label, site) : hkl_new(st, nsize, label, site);
    if (!p) return NULL;
    if (ptr) hkl_lines_resized(lines, ptr, osize, p, nsize, line);
    else hkl_lines_made(lines, p, nsize, line);
    return p;
}

#else

#define allocate_counted(st, ptr, osize, nsize, label, site) NULL

#endif

/* What a state needs decides what is done, at compile time. */
typedef enum need { PLAIN, SAMPLED, LIMITED, SHARED, PROFILED, EXACT, LINES } need;

/* Nothing has to be done when the context refuses. */
static inline bool may_be_plain(const hkl_state *st, need is)
{
    return is <= SAMPLED || (is >= PROFILED && st->hard == 0 && (LUA_VERSION_NUM != 501 || st->soft == 0));
}

static inline void *allocate(hkl_state *st, void *ptr, size_t osize, size_t nsize, origin from, need is)
{
    if (is == SHARED)
        return ptr ? hkl_shared_resize(st, ptr, osize, nsize, from.label, from.site)
                   : hkl_shared_new(st, nsize, from.label, from.site, from.site);
    if (is == LINES) return allocate_counted(st, ptr, osize, nsize, from.label, from.site);
    if (is == EXACT) st->profile->site = from.site;
    if (ptr && is == SAMPLED) return resize_sampled(st, ptr, osize, nsize, from.label, from.site);
    if (ptr) {
        const bool moves = is >= PROFILED && nsize > osize && osize >= HKL_PROFILE_MAY_MOVE;
        return (moves ? resize_profiled : resize)(st, ptr, osize, nsize, from.label, from.site);
    }
    if (!may_be_plain(st, is) ||
        __builtin_expect(st->until_check < (int64_t)nsize || nsize >= HKL_STATE_LEAST, 0))
        return allocate_pressed(st, nsize, from.label, from.site);
    st->until_check -= (int64_t)nsize;
    return hak_alloc_cs(st->ctx, nsize, from.label, from.site);
}

#define UNCACHED(name, is)                                                                                   \
    APART void *name(hkl_state *st, void *ptr, size_t osize, size_t nsize, hkc_cfi_place caller)             \
    {                                                                                                        \
        return allocate(st, ptr, osize, nsize, find_slow(st->labels, caller), is);                           \
    }
UNCACHED(allocate_uncached, LIMITED)
UNCACHED(share_uncached, SHARED)
UNCACHED(count_uncached, LINES)
/* Of both kinds of profiles: that the site is noted does no harm to a sampled one. */
UNCACHED(profile_uncached, EXACT)

__attribute__((always_inline)) static inline void *labelled(void *ud, void *ptr, size_t osize, size_t nsize,
                                                            need is)
{
    hkl_state *st = ud;
    if (is == SHARED && nsize == 0) return hkl_shared_free(st, ptr, osize);
    if (nsize == 0) {
#if LUA_VERSION_NUM >= 505
        if (hkl_frees_watched(st)) return hkl_free_watched(st, ptr, osize);
#elif defined(HKC_CFI_WALK)
        if (is >= EXACT) hkl_quick_freed(&st->profile->quick, ptr);
        if (is == LINES && ptr) hkl_lines_freed(st->profile->lines, ptr, osize);
#endif
        return release(st, ptr, osize);
    }
    const hkl_labels *labels = st->labels;
    origin from = {is == SHARED ? hkl_scope(st) : st->scope, HAK_CALLSITE()};
    if (is >= PROFILED && !st->labelled) return allocate(st, ptr, osize, nsize, (origin){0, from.site}, is);
    if (LUA_VERSION_NUM >= 502 && from.label == 0 && !ptr && osize < HKL_TAGS)
        from.label = labels->of_tag[osize];
    if (from.label == 0) {
        from = find(labels, HKC_CFI_SP_ABOVE());
        if (__builtin_expect(from.label == 0, 0))
            return (is == LINES                       ? count_uncached
                    : is == SAMPLED || is >= PROFILED ? profile_uncached
                    : is == SHARED                    ? share_uncached
                                   : allocate_uncached)(st, ptr, osize, nsize, HKC_CFI_SP_ABOVE());
    }
    return allocate(st, ptr, osize, nsize, from, is);
}

#define LUA_ALLOC(name, is)                                                                                  \
    void *name(void *ud, void *ptr, size_t osize, size_t nsize)                                              \
    {                                                                                                        \
        return labelled(ud, ptr, osize, nsize, is);                                                          \
    }
LUA_ALLOC(hkl_labels_alloc, PLAIN)
LUA_ALLOC(hkl_labels_alloc_limited, LIMITED)
LUA_ALLOC(hkl_labels_alloc_shared, SHARED)
LUA_ALLOC(hkl_labels_alloc_sampled, SAMPLED)
LUA_ALLOC(hkl_labels_alloc_profiled, PROFILED)
LUA_ALLOC(hkl_labels_alloc_exact, EXACT)
LUA_ALLOC(hkl_labels_alloc_lines, LINES)
