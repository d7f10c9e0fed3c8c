#include "label.h"

#include "calibrate.h"
#include "label_kind.h"
#include "label_site.h"

struct hk_lua_labels {
    hak_label of_kind[HK_KIND_COUNT];
    hak_label of_tag[HK_TAGS]; /* 0 = look at the frames */
    hak_ctx *ctx;
};

#define KIND_NAME(name, text) text,
static const char *const kind_names[] = {HK_KINDS(KIND_NAME)};

static void define_tags(hk_lua_labels *labels)
{
    for (size_t tag = 0; tag < HK_TAGS; tag++) {
        hk_kind kind = hk_kind_of_tag(tag);
        labels->of_tag[tag] = kind == HK_KIND_OTHER ? 0 : labels->of_kind[kind];
    }
}

hk_lua_labels *hk_lua_labels_new(hak_ctx *ctx)
{
    if (!hk_calibrate()) return NULL;
    hak_label own = hak_label_define(ctx, kind_names[HK_KIND_REGISTRY]);
    hk_lua_labels *labels = hak_alloc_cs(ctx, sizeof *labels, own, 0);
    if (labels == NULL) return NULL;
    labels->ctx = ctx;
    for (int k = 0; k < HK_KIND_COUNT; k++) {
        labels->of_kind[k] = hak_label_define(ctx, kind_names[k]);
        if (labels->of_kind[k] == 0) {
            hak_free(ctx, labels);
            return NULL;
        }
    }
    define_tags(labels);
    return labels;
}

void hk_lua_labels_delete(hk_lua_labels *labels)
{
    if (labels != NULL) hak_free(labels->ctx, labels);
}

hak_label hk_lua_labels_registry(const hk_lua_labels *labels)
{
    return labels->of_kind[HK_KIND_REGISTRY];
}

typedef struct origin {
    hak_label label; /* 0 = not in the cache */
    hak_site site;
} origin;

#ifdef HK_CFI_WALK

/* Up from lua_Alloc to the first function that is no helper: one frame or two on average. */
static inline origin find(const hk_lua_labels *labels, uintptr_t sp)
{
    for (;;) {
        uintptr_t pc = ((const uintptr_t *)sp)[-1];
        uint64_t info = hk_site_home(hk_site_cache, HK_SITE_SLOTS, pc);
        if (info < HK_SITE_CLIMB) return (origin){labels->of_kind[info], pc};
        if (__builtin_expect(info > HK_SITE_INFO, 0)) return (origin){0, 0};
        sp += (info - HK_SITE_CLIMB) * sizeof(uintptr_t);
    }
}

static origin find_slow(const hk_lua_labels *labels, uintptr_t caller_sp)
{
    uintptr_t sp = caller_sp;
    for (;;) {
        uintptr_t pc = ((const uintptr_t *)sp)[-1];
        unsigned info = hk_site_resolve(pc, caller_sp);
        if ((info & HK_SITE_CLIMB) == 0) return (origin){labels->of_kind[info], pc};
        sp += (info & 0x7fff) * sizeof(uintptr_t);
    }
}

#else

#define HK_CFI_SP_ABOVE() ((uintptr_t)HAK_CALLSITE())

static inline origin find(const hk_lua_labels *labels, uintptr_t site)
{
    return (origin){labels->of_kind[HK_KIND_OTHER], site};
}

#define find_slow find

#endif

/* The parts below are not inlined, and called last, so that hk_lua_labels_alloc itself saves no registers. */
#define APART __attribute__((noinline)) static

APART void *release(hk_lua_state *st, void *ptr, size_t osize)
{
    return hk_lua_free(st, ptr, osize);
}

APART void *allocate_pressed(hk_lua_state *st, size_t nsize, hak_label label, hak_site site)
{
    hk_lua_check_pressure(st);
    return hak_alloc_cs(st->ctx, nsize, label, site);
}

APART void *resize(hk_lua_state *st, void *ptr, size_t osize, size_t nsize, hak_label label, hak_site site)
{
    if (hk_lua_is_foreign(st, ptr)) return hk_lua_migrate(st, ptr, osize, nsize, label, site);
    if (nsize > osize) hk_lua_grow(st, nsize - osize);
    return hak_realloc_sized_cs(st->ctx, ptr, osize, nsize, label, site);
}

static inline void *allocate(hk_lua_state *st, void *ptr, size_t osize, size_t nsize, origin from)
{
    if (ptr != NULL) return resize(st, ptr, osize, nsize, from.label, from.site);
    st->until_check -= (int64_t)nsize;
    if (__builtin_expect(st->until_check < 0, 0)) return allocate_pressed(st, nsize, from.label, from.site);
    return hak_alloc_cs(st->ctx, nsize, from.label, from.site);
}

APART void *allocate_uncached(hk_lua_state *st, void *ptr, size_t osize, size_t nsize, uintptr_t caller_sp)
{
    return allocate(st, ptr, osize, nsize, find_slow(st->labels, caller_sp));
}

void *hk_lua_labels_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    hk_lua_state *st = ud;
    if (nsize == 0) return release(st, ptr, osize);
    const hk_lua_labels *labels = st->labels;
    origin from = {st->scope, HAK_CALLSITE()};
    if (LUA_VERSION_NUM >= 503 && from.label == 0 && ptr == NULL && osize < HK_TAGS)
        from.label = labels->of_tag[osize];
    if (from.label == 0) {
        from = find(labels, HK_CFI_SP_ABOVE());
        if (__builtin_expect(from.label == 0, 0))
            return allocate_uncached(st, ptr, osize, nsize, HK_CFI_SP_ABOVE());
    }
    return allocate(st, ptr, osize, nsize, from);
}
