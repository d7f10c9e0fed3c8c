#define _GNU_SOURCE
#include "calibrate.h"
#include "calibrate_ops.h"

#include "cfi.h"
#include "common/pages.h"
#include "label_site.h"
#include "state.h"

#ifdef HKC_CFI_WALK

#include <lauxlib.h>
#include <lualib.h>

#include <pthread.h>
#include <string.h>

enum {
    REGION_BYTES = 16 << 20, /* reserved; less than 1 MB is touched */
    MAX_OBSERVATIONS = 2048,
    MAX_WATCHED = 2048,
    KNOWN_SLOTS = 1024,
    UNUSED_LISTS = 128,
    RULES = sizeof((hkl_calibrate_op *)0)->rules / sizeof(hkl_calibrate_rule),
    WARM_UP = 4, /* calls until an operation runs on traces, with the settings of run_all */
};

/* In front of every block of the scratch state. */
typedef struct header {
    uint32_t op;    /* in which the block was last allocated */
    uint32_t index; /* in watched; of an unused block: its size */
} header;
_Static_assert(sizeof(header) == 8, "blocks are aligned to 8");

typedef struct watched {
    hkl_observation seen;
    size_t size;
    uint32_t next; /* it grew into this one; 0 = did not */
    bool freed, tagged;
} watched;

typedef struct known_rule {
    uintptr_t pc;
    hkc_cfi_rule rule;
    bool ok;
} known_rule;

typedef struct recorder {
    char *next, *end; /* of the region */
    header *unused[UNUSED_LISTS];
    bool watching;
    size_t least; /* bytes of blocks that a rule could match */
    uint32_t op;
    size_t watched_count, observation_count;
    watched watched[MAX_WATCHED]; /* of this operation; [0] unused */
    hkl_observation observations[MAX_OBSERVATIONS];
    known_rule known[KNOWN_SLOTS]; /* hash table, by pc */
} recorder;

static const known_rule *rule_for(recorder *rec, uintptr_t pc)
{
    size_t i = (size_t)(pc ^ (pc >> 11)) % KNOWN_SLOTS;
    for (size_t n = 0; n < KNOWN_SLOTS / 2 && rec->known[i].pc != 0 && rec->known[i].pc != pc; n++)
        i = (i + 1) % KNOWN_SLOTS;
    known_rule *known = &rec->known[i];
    if (known->pc != pc) {
        known->pc = pc;
        known->ok = hkc_cfi_rule_at(pc, &known->rule);
    }
    return known;
}

static void walk(recorder *rec, hkl_observation *o, hkc_cfi_frame frame)
{
    for (o->depth = 0; o->depth < HKL_SITE_FRAMES; o->depth++) {
        const known_rule *known = rule_for(rec, frame.pc);
        if (!known->ok) return;
        hkc_cfi_frame up = hkc_cfi_up(frame, &known->rule);
        o->frames[o->depth] = (hkl_site_frame){frame.pc, up.sp - frame.sp};
        frame = up;
    }
}

static header **next_unused(header *h)
{
    return (header **)(void *)(h + 1);
}

static void watch(recorder *rec, header *h, size_t size, bool tagged, hkc_cfi_frame frame)
{
    h->op = rec->op;
    h->index = 0;
    if (!rec->watching || size < rec->least || rec->watched_count + 1 >= MAX_WATCHED) return;
    h->index = (uint32_t)++rec->watched_count;
    watched *w = &rec->watched[h->index];
    *w = (watched){.size = size, .tagged = tagged};
    walk(rec, &w->seen, frame);
}

static watched *watched_of(recorder *rec, const header *h)
{
    return h->op == rec->op && h->index != 0 ? &rec->watched[h->index] : NULL;
}

static size_t round_up(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* A block of the region; one that was freed, if there is one of exactly this size. */
static header *take(recorder *rec, size_t size)
{
    header **list = &rec->unused[size / 8 % UNUSED_LISTS];
    for (header **h = list; *h; h = next_unused(*h)) {
        header *found = *h;
        if (found->index == size) {
            *h = *next_unused(found);
            return found;
        }
    }
    header *h = (header *)(void *)rec->next;
    if (sizeof(header) + size > (size_t)(rec->end - rec->next)) return NULL;
    rec->next += sizeof(header) + size;
    return h;
}

static void put(recorder *rec, header *h, size_t size)
{
    header **list = &rec->unused[size / 8 % UNUSED_LISTS];
    h->index = (uint32_t)size;
    *next_unused(h) = *list;
    *list = h;
}

static void *scratch_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    recorder *rec = ud;
    header *old = ptr ? (header *)ptr - 1 : NULL;
    watched *from = old ? watched_of(rec, old) : NULL;
    if (nsize == 0) {
        if (from) from->freed = true;
        if (old) put(rec, old, round_up(osize));
        return NULL;
    }
    header *h = take(rec, round_up(nsize));
    if (!h) return NULL;
    watch(rec, h, nsize, !ptr && hkl_kind_of_tag(osize) != HKL_KIND_OTHER, HKC_CFI_CALLER());
    if (from) {
        from->next = h->index;
        from->freed = h->index == 0;
    }
    if (old) {
        memcpy(h + 1, ptr, osize < nsize ? osize : nsize);
        put(rec, old, round_up(osize));
    }
    return h + 1;
}

static hkl_fate fate_of(const recorder *rec, const watched *w)
{
    while (w->next != 0)
        w = &rec->watched[w->next];
    return w->freed ? HKL_FATE_FREED : HKL_FATE_KEPT;
}

static bool rule_matches(const hkl_calibrate_rule *r, size_t size, hkl_fate fate)
{
    if (r->max == 0 || size < r->min || size > r->max) return false;
    if (r->power_of_2 && (size & (size - 1)) != 0) return false;
    return r->fate == HKL_FATE_ANY || r->fate == fate;
}

static bool is_same(const hkl_observation *a, const hkl_observation *b)
{
    return a->kind == b->kind && a->depth == b->depth &&
           memcmp(a->frames, b->frames, a->depth * sizeof a->frames[0]) == 0;
}

static void keep(recorder *rec, hkl_observation o, size_t first)
{
    for (size_t i = first; i < rec->observation_count; i++) {
        if (is_same(&rec->observations[i], &o)) return;
    }
    if (rec->observation_count < MAX_OBSERVATIONS) rec->observations[rec->observation_count++] = o;
}

static void judge(recorder *rec, const hkl_calibrate_op *op)
{
    size_t first = rec->observation_count;
    for (size_t i = 1; i <= rec->watched_count; i++) {
        watched *w = &rec->watched[i];
        if (w->tagged) continue;
        hkl_fate fate = fate_of(rec, w);
        for (size_t r = 0; r < RULES; r++) {
            if (rule_matches(&op->rules[r], w->size, fate)) {
                w->seen.kind = (uint8_t)op->rules[r].kind;
                w->seen.broad = op->broad;
                keep(rec, w->seen, first);
                break;
            }
        }
    }
}

/* jit.on() and the like; false on runtimes without a compiler. */
static bool call_jit(lua_State *L, const char *function)
{
    lua_getglobal(L, "jit");
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return false;
    }
    lua_getfield(L, -1, function);
    bool ok = lua_pcall(L, 0, 0, 0) == 0;
    lua_pop(L, ok ? 1 : 2);
    return ok;
}

/* Calls the function on top of the stack, which stays there. An operation that fails has shown what it
 * could until then. */
static void call(lua_State *L)
{
    lua_pushvalue(L, -1);
    if (lua_pcall(L, 0, 0, 0) != 0) lua_pop(L, 1);
}

static size_t least_of(const hkl_calibrate_op *op)
{
    size_t least = SIZE_MAX;
    for (size_t r = 0; r < RULES; r++) {
        if (op->rules[r].max != 0 && op->rules[r].min < least) least = op->rules[r].min;
    }
    return least;
}

static void watch_call(lua_State *L, recorder *rec, const hkl_calibrate_op *op)
{
    rec->op++;
    rec->watched_count = 0;
    rec->least = least_of(op);
    rec->watching = true;
    call(L);
    rec->watching = false;
    judge(rec, op);
}

static bool push_function(lua_State *L, const hkl_calibrate_op *op)
{
    if (!op->script) {
        lua_pushcfunction(L, op->run);
        return true;
    }
    if (luaL_loadstring(L, op->script) == 0 && lua_pcall(L, 0, 1, 0) == 0 && lua_isfunction(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

static void run_op(lua_State *L, recorder *rec, const hkl_calibrate_op *op)
{
    if (op->compiling && !call_jit(L, "on")) return;
    if (push_function(L, op)) {
        watch_call(L, rec, op);
        if (op->traces && call_jit(L, "on")) {
            for (int i = 0; i < WARM_UP; i++)
                call(L);
            /* Traces stay, but none is added. */
            call_jit(L, "off");
            watch_call(L, rec, op);
        }
        lua_pop(L, 1);
    }
    if (op->compiling) call_jit(L, "off");
}

static int run_all(lua_State *L)
{
    recorder *rec = lua_touserdata(L, 1);
    hkl_open_libraries(L);
    hkl_collector_off(L);
    if (call_jit(L, "off")) {
        hkl_site_has_traces();
        if (luaL_loadstring(L, "jit.opt.start('hotloop=2', 'hotexit=2')") == 0) call(L);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < hkl_calibrate_op_count; i++)
        run_op(L, rec, &hkl_calibrate_ops[i]);
    return 0;
}

static bool learn(recorder *rec)
{
    lua_State *L = HKL_NEW_STATE(scratch_alloc, rec);
    if (!L) return false;
    lua_atpanic(L, hkl_panic);
    lua_pushcfunction(L, run_all);
    lua_pushlightuserdata(L, rec);
    bool ok = lua_pcall(L, 1, 0, 0) == 0;
    hkl_site_learn(rec->observations, rec->observation_count);
    lua_close(L);
    return ok;
}

static bool calibrated;

static void calibrate(void)
{
    calibrated = hkl_lesson_take(HKL_LESSON_LABELS, hkl_site_lesson);
    if (calibrated) return;
    void *region = hkc_pages(REGION_BYTES);
    if (region) {
        recorder *rec = region;
        rec->next = (char *)(rec + 1);
        rec->end = (char *)region + REGION_BYTES;
        calibrated = learn(rec);
        hkc_pages_give(region, REGION_BYTES);
    }
    if (calibrated) hkl_lesson_keep(HKL_LESSON_LABELS, hkl_site_lesson);
}

bool hkl_calibrate(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, calibrate);
    return calibrated;
}

#else

bool hkl_calibrate(void)
{
    return true;
}

#endif
