#include "profile/profile.h"

#include "alloc.h"
#include "common/otel.h"
#include "common/report.h"
#include "label.h"
#include "shared.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 32,
    DEPTH_MOST = 64,
    TABLE_BYTES = 16 << 20,
    TABLE_LEAST = 1 << 20,
    NAMES_BYTES = 16 << 20,
    NAMES_LEAST = 512 << 10
};
#define EXACT_TABLE_BYTES ((size_t)1 << 30) /* each live block is in it */
#define LINES_TABLE_BYTES ((size_t)1 << 28) /* a record of 120 bytes for each line, and windows */

#ifdef HKC_CFI_WALK

/* Where each block counts there is no time to go up through the frames of the core: these lua_Alloc note what
 * the runtime has in its registers, and go on in hkl_labels_alloc_* as if that had been called. */
void *hkl_profile_alloc_exact(void *ud, void *ptr, size_t osize, size_t nsize);
void *hkl_profile_alloc_lines(void *ud, void *ptr, size_t osize, size_t nsize);

_Static_assert(offsetof(hkl_profile, at) == 0, "as written here");
_Static_assert(offsetof(hkl_state, profile) == 16, "as read here");
#ifdef __x86_64__
_Static_assert(offsetof(hkc_cfi_registers, pc) == 56, "as written here");
#define NOTE_REGISTERS(of, to)                                                                               \
    __asm__(".text\n"                                                                                        \
            ".globl " of "\n"                                                                                \
            ".hidden " of "\n"                                                                               \
            ".hidden " to "\n"                                                                               \
            ".type " of ", @function\n" of ":\n"                                                             \
            "    .cfi_startproc\n"                                                                           \
            "    testq %rcx, %rcx\n" /* nothing is asked of a free */                                        \
            "    je 1f\n"                                                                                    \
            "    movq 16(%rdi), %rax\n"                                                                      \
            "    movq %rbx, 0(%rax)\n"                                                                       \
            "    movq %rbp, 8(%rax)\n"                                                                       \
            "    movq %r12, 16(%rax)\n"                                                                      \
            "    movq %r13, 24(%rax)\n"                                                                      \
            "    movq %r14, 32(%rax)\n"                                                                      \
            "    movq %r15, 40(%rax)\n"                                                                      \
            "    leaq 8(%rsp), %r10\n"                                                                       \
            "    movq %r10, 48(%rax)\n"                                                                      \
            "    movq (%rsp), %r10\n"                                                                        \
            "    movq %r10, 56(%rax)\n"                                                                      \
            "1:  jmp " to "\n"                                                                               \
            "    .cfi_endproc\n"                                                                             \
            ".size " of ", .-" of "\n")
#else
_Static_assert(offsetof(hkc_cfi_registers, pc) == 96, "as written here");
#define NOTE_REGISTERS(of, to)                                                                               \
    __asm__(".text\n"                                                                                        \
            ".globl " of "\n"                                                                                \
            ".hidden " of "\n"                                                                               \
            ".hidden " to "\n"                                                                               \
            ".type " of ", %function\n" of ":\n"                                                             \
            "    .cfi_startproc\n"                                                                           \
            "    cbz x3, 1f\n" /* nothing is asked of a free */                                              \
            "    ldr x9, [x0, 16]\n"                                                                         \
            "    stp x19, x20, [x9]\n"                                                                       \
            "    stp x21, x22, [x9, 16]\n"                                                                   \
            "    stp x23, x24, [x9, 32]\n"                                                                   \
            "    stp x25, x26, [x9, 48]\n"                                                                   \
            "    stp x27, x28, [x9, 64]\n"                                                                   \
            "    mov x10, sp\n"                                                                              \
            "    stp x29, x10, [x9, 80]\n"                                                                   \
            "    str x30, [x9, 96]\n"                                                                        \
            "1:  b " to "\n"                                                                                 \
            "    .cfi_endproc\n"                                                                             \
            ".size " of ", .-" of "\n")
#endif
NOTE_REGISTERS("hkl_profile_alloc_exact", "hkl_labels_alloc_exact");
NOTE_REGISTERS("hkl_profile_alloc_lines", "hkl_labels_alloc_lines");

/* Of the call of lua_Alloc that goes on: the slot of its stack. Below 0 = it is to be walked. */
static int slot_of(hkl_profile *p, hak_site site)
{
    return p->is_quick && site != 0 && site == p->site ? hkl_quick_find(&p->quick, &p->at) : -1;
}

static size_t known(const hkl_profile *p, int slot, uintptr_t *frames, size_t room)
{
    const uintptr_t *all;
    size_t n = hkl_quick_frames(&p->quick, slot, &all);
    if (n > room) n = room;
    memcpy(frames, all, n * sizeof *frames);
    return n;
}

/* Of the same call: its stack. Exact: what the host itself takes from the context has another site. 0 = no
 * thread was found, or nothing runs on it. */
static size_t walk_lua(hkl_profile *p, hak_site site, uintptr_t *frames, size_t room)
{
    hkc_cfi_registers at;
    hkl_asker asker = {NULL, &p->at, &p->walk};
    if (p->registers && (site == 0 || site != p->site)) return 0;
    if (!p->registers) {
        hkc_cfi_here(&at);
        asker.at = &at;
        if (!hkl_thread_unwind(&p->walk, &at)) return 0;
    }
    asker.L = hkl_thread_at(&p->walk, p->st, asker.at);
    if (!asker.L) return 0;
    size_t n = hkl_frames_walk(p->frames, &asker, p->depth, frames, room);
    if (n > 0 && n < room && asker.L != p->st->main && p->depth > 1) {
        const hak_lua_frame end = {.kind = HAK_LUA_FRAME_COROUTINE, .source = "", .function = ""};
        frames[n++] = hkl_frames_number(p->frames, &end);
    }
    return n;
}

#else

#define hkl_profile_alloc_exact hkl_labels_alloc_exact
#define hkl_profile_alloc_lines hkl_labels_alloc_lines

static int slot_of(hkl_profile *p, hak_site site)
{
    (void)p;
    (void)site;
    return -1;
}

static size_t known(const hkl_profile *p, int slot, uintptr_t *frames, size_t room)
{
    (void)p;
    (void)slot;
    (void)frames;
    (void)room;
    return 0;
}

static size_t walk_lua(hkl_profile *p, hak_site site, uintptr_t *frames, size_t room)
{
    (void)p;
    (void)site;
    (void)frames;
    (void)room;
    return 0;
}

#endif

static size_t walk(hkl_profile *p, hak_site site, int slot, uintptr_t *frames, size_t room)
{
    size_t n = slot >= 0 ? known(p, slot, frames, room) : walk_lua(p, site, frames, room);
    if (n == 0 && site != 0 && room > 0) frames[n++] = site;
    return n;
}

/* Runs inside of lua_Alloc. */
static size_t take_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    hkl_profile *p = user;
    (void)ctx;
    if (!p->holds || site != p->site) return walk(p, site, slot_of(p, site), frames, room);
    const size_t n = p->held < room ? p->held : room;
    memcpy(frames, p->hold, n * sizeof *frames);
    return n;
}

void hkl_profile_hold_now(hkl_profile *p)
{
    p->held = walk(p, p->site, slot_of(p, p->site), p->hold, HAK_PROFILE_DEPTH_MOST);
    p->holds = true;
}

lua_Alloc hkl_profile_alloc_for(const hkl_profile *p)
{
    const hkl_state *st = p->st;
    if (hkl_profile_by_line(st)) return hkl_profile_alloc_lines;
    if (p->registers) return hkl_profile_alloc_exact;
    const bool refuses = st->hard != 0 || (LUA_VERSION_NUM == 501 && st->soft != 0);
    return st->labelled && !refuses ? hkl_labels_alloc_sampled : hkl_labels_alloc_profiled;
}

bool hkl_profile_is_alloc(lua_Alloc f)
{
    return f == hkl_profile_alloc_exact || f == hkl_profile_alloc_lines || f == hkl_labels_alloc_sampled ||
           f == hkl_labels_alloc_profiled;
}

#ifdef HKC_CFI_WALK

unsigned hkl_profile_line_new(hkl_profile *p, int slot, hak_label label, hak_site site)
{
    hkl_lines *l = p->lines;
    uintptr_t frames[HAK_PROFILE_DEPTH_MOST];
    if (!l->running) return 0;
    p->site = site;
    const size_t depth = walk(p, site, slot, frames, HAK_PROFILE_DEPTH_MOST);
    const unsigned line = hkl_lines_number(l, frames, depth, label);
    if (slot < 0) return line;
    uint32_t *const stack = &p->quick.slots[slot].user;
    if (*stack == 0) *stack = ++l->stacks;
    *hkl_lines_met_at(l, *stack, label) = (hkl_lines_met){*stack, label, (uint16_t)line};
    return line;
}

static bool lines_start(hkl_profile *p)
{
    p->lines = hkl_lines_new(p->st->ctx);
    return p->lines != NULL;
}

static void lines_stop(hkl_profile *p)
{
    if (p->lines) hkl_lines_stop(p->lines);
}

static void lines_delete(hkl_profile *p)
{
    hkl_lines_delete(p->lines);
    p->lines = NULL;
}

static void lines_forget(hkl_profile *p)
{
    if (p->lines) hkl_lines_forget(p->lines);
}

#else

static bool lines_start(hkl_profile *p)
{
    (void)p;
    return false;
}

static void lines_stop(hkl_profile *p)
{
    (void)p;
}

static void lines_delete(hkl_profile *p)
{
    (void)p;
}

static void lines_forget(hkl_profile *p)
{
    (void)p;
}

#endif

/* A profile that runs begins again with new records; of one that has ended nothing is left in the core. */
static void lines_gone(void *user)
{
    hkl_profile *p = user;
    lines_forget(p);
    if (!p->running) p->counted = false;
}

void hkl_profile_end(hkl_profile *p)
{
    if (p->running) hak_profile_stop(p->st->ctx);
    p->running = p->turns = false;
    lines_stop(p);
#ifdef HKC_CFI_WALK
    p->is_quick = false;
#endif
}

void hkl_profile_delete(hkl_profile *p)
{
    if (!p) return;
    hak_ctx *ctx = p->st->ctx; /* which may be the host's, and stay, with a profile of the host's */
    hkl_profile_end(p);
    if (p->counted) hak_profile_reset(ctx);
    hkl_frames_delete(p->frames);
    lines_delete(p);
    free(p);
}

static hkl_profile *profile_new(hkl_state *st)
{
    hkl_profile *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->st = st;
    p->frames = hkl_frames_new(NAMES_LEAST);
    if (p->frames) return p;
    free(p);
    return NULL;
}

_Static_assert((int)HAK_LUA_PROFILE_SAMPLED == (int)HAK_PROFILE_SAMPLED &&
                   (int)HAK_LUA_PROFILE_EXACT == (int)HAK_PROFILE_EXACT &&
                   (int)HAK_LUA_PROFILE_LINES == (int)HAK_PROFILE_COUNTED,
               "as used here and in module.c");

/* No limit counts what a profile takes: where there is one, a tenant's programs, which can make stacks and names at
 * will, get no more of it than the limit. */
static size_t bounded(size_t bytes, size_t hard, size_t least)
{
    const size_t most = hard > least ? hard : least;
    return hard != 0 && bytes > most ? most : bytes;
}

static size_t hard_limit(const hak_ctx *ctx)
{
    hak_stats stats = {.size = sizeof stats};
    return hak_ctx_stats(ctx, &stats) == 0 ? stats.hard_limit : 0;
}

static size_t table_bytes(const hak_lua_profile_options *o, size_t hard)
{
    if (o->table_bytes != 0) return o->table_bytes;
    const size_t bytes = o->mode == HAK_LUA_PROFILE_EXACT   ? EXACT_TABLE_BYTES
                         : o->mode == HAK_LUA_PROFILE_LINES ? LINES_TABLE_BYTES
                                                            : TABLE_BYTES;
    return bounded(bytes, hard, TABLE_LEAST);
}

static bool start_core(hkl_profile *p, const hak_lua_profile_options *o)
{
    const size_t hard = hard_limit(p->st->ctx);
    hkl_frames_bound(p->frames, hard != 0 ? bounded(NAMES_BYTES, hard / 4, NAMES_LEAST) : NAMES_BYTES);
    hak_profile_options core = {
        .size = sizeof core,
        .mode = (hak_profile_mode)o->mode,
        .mean = o->mean,
        .depth = HAK_PROFILE_DEPTH_MOST,
        .table_bytes = table_bytes(o, hard),
        .frames = take_frames,
        .user = p,
        .seed = o->seed,
        .resident = hkc_resident,
        .window_ns = o->window_ns,
        .gone = lines_gone,
        .apart = true, /* a tenant's limit is for what the tenant takes */
        .bounded_label = hkl_labels_bounded(p->st->labels),
    };
    hkc_otel_tell(&core);
    return hak_profile_start(p->st->ctx, &core) == 0;
}

static bool is_sound(const hak_lua_profile_options *o)
{
    if (o->mode == HAK_LUA_PROFILE_LINES && (o->depth > 1 || o->mean != 0 || o->seed != 0)) return false;
    return (unsigned)o->mode <= HAK_LUA_PROFILE_LINES && o->depth <= DEPTH_MOST;
}

int hak_lua_profile_start(lua_State *L, const hak_lua_profile_options *given)
{
    hak_lua_profile_options o = HAK_LUA_PROFILE_OPTIONS_INIT;
    if (given && !hak_sized_copy(&o, sizeof o, given)) return -1;
    hkl_state *st = is_sound(&o) ? hkl_state_attach(L) : NULL;
    if (!st || st->shared || !hkl_is_first(st, L)) return -1;
    /* Exact: a state beside may have a lua_Alloc that does not note its calls. Any: one that counts by line
     * needs the records. */
    if (hkl_has_others(st) && (o.mode != HAK_LUA_PROFILE_SAMPLED || hkl_profile_by_line(st))) return -1;
    if (!st->profile) st->profile = profile_new(st);
    if (!st->profile || st->profile->running) return -1;
    const bool by_line = o.mode == HAK_LUA_PROFILE_LINES;
    if (hkl_thread_learn() < by_line) return -1;
    hkl_profile *p = st->profile;
    lines_delete(p); /* its records go */
    lua_setallocf(L, hkl_alloc_for(st), st);
    if (!start_core(p, &o)) return -1;
    p->counted = by_line;
    if (by_line && !lines_start(p)) {
        hak_profile_stop(st->ctx);
        return -1;
    }
    const unsigned depth = o.mode == HAK_LUA_PROFILE_SAMPLED ? DEPTH : 1;
    p->depth = o.depth != 0 ? o.depth : depth;
    p->registers = o.mode != HAK_LUA_PROFILE_SAMPLED;
#ifdef HKC_CFI_WALK
    /* code may have been freed since the last profile */
    p->is_quick = p->registers && p->depth == 1 && hkl_quick_known();
    if (p->is_quick) hkl_quick_begin(&p->quick, st, &p->walk, p->frames);
#endif
    p->running = true;
    p->turns = by_line && o.window_ns != 0;
    if (p->turns) st->until_check = 0; /* the first look says when to look again */
    lua_setallocf(L, hkl_alloc_for(st), st);
    return 0;
}

int hak_lua_profile_stop(lua_State *L)
{
    hkl_state *st = hkl_state_of(L);
    if (!st || !st->profile || !hkl_is_first(st, L)) return -1;
    if (!st->profile->running) return 0;
    st->profile->running = st->profile->turns = false;
    lines_stop(st->profile);
    lua_setallocf(L, hkl_alloc_for(st), st);
    return hak_profile_stop(st->ctx);
}

int hak_lua_profile_frame(lua_State *L, uintptr_t number, hak_lua_frame *out)
{
    const hkl_state *st = hkl_state_of(L);
    const hak_lua_frame *f = st && st->profile ? hkl_frames_at(st->profile->frames, number) : NULL;
    if (!f) return -1;
    *out = *f;
    return 0;
}
