#include "profile/pc.h"

#include <string.h>

#ifdef HKC_CFI_WALK

enum { CLIMB_MOST = HKL_PC_CLIMB_MOST, MAX_PLACES = 256, INSTRUCTION = 4, SEEN_LEAST = 2 };

#if LUA_VERSION_NUM >= 504 || LUA_VERSION_NUM == 501

/* A return address between the interpreter and lua_Alloc. */
typedef struct place {
    uintptr_t pc, function;
    hkc_cfi_mask registers; /* of those that had the instruction every time */
    uint8_t seen;
#if LUA_VERSION_NUM >= 505
    uint64_t words; /* of the frame: the same */
#endif
} place;

static place places[MAX_PLACES];
static int place_count;
static bool learnt, wrong;

static uintptr_t int_at(const void *object, size_t offset)
{
    return (uintptr_t) * (const int *)(const void *)((const char *)object + offset);
}

/* Where the function at level 0 stores its instruction, and its code. */
typedef struct running {
    uintptr_t *stored, code, end;
} running;

#if LUA_VERSION_NUM >= 504
/* CallInfo: func, top, previous, next, savedpc. Proto: sizecode at 24, lines at 44 and 48, code at 64. */
static running running_of(lua_State *L, const lua_Debug *ar)
{
    (void)L;
    char *ci = (char *)ar->i_ci;
    const void *function = (const void *)hkl_thread_word(ci, 0);
    const void *closure = (const void *)hkl_thread_word(function, 0);
    const void *proto = (const void *)hkl_thread_word(closure, 24);
    running r = {(uintptr_t *)(void *)(ci + 32), 0, 0};
    r.code = hkl_thread_word(proto, 64);
    r.end = r.code + int_at(proto, 24) * INSTRUCTION;
    const bool known = int_at(proto, 44) == (uintptr_t)ar->linedefined &&
                       int_at(proto, 48) == (uintptr_t)ar->lastlinedefined;
    return known ? r : (running){NULL, 0, 0};
}
#else
/* lua_State: ci at 40, savedpc at 48. CallInfo: base, func. Proto: code at 24, sizecode at 80, lines at 96,
 * 100. */
static running running_of(lua_State *L, const lua_Debug *ar)
{
    const void *ci = (const void *)hkl_thread_word(L, 40);
    const void *function = (const void *)hkl_thread_word(ci, 8);
    const void *closure = (const void *)hkl_thread_word(function, 0);
    const void *proto = (const void *)hkl_thread_word(closure, 32);
    running r = {(uintptr_t *)(void *)((char *)L + 48), hkl_thread_word(proto, 24), 0};
    r.end = r.code + int_at(proto, 80) * INSTRUCTION;
    const bool known = int_at(proto, 96) == (uintptr_t)ar->linedefined &&
                       int_at(proto, 100) == (uintptr_t)ar->lastlinedefined;
    return known ? r : (running){NULL, 0, 0};
}
#endif

static bool is_in(const running *r, uintptr_t pc)
{
    return pc > r->code && pc <= r->end && (pc - r->code) % INSTRUCTION == 0;
}

static place *see_place(uintptr_t pc, hkc_cfi_mask registers)
{
    int i = 0;
    while (i < place_count && places[i].pc != pc)
        i++;
    if (i == MAX_PLACES) return NULL;
    if (i == place_count)
        places[place_count++] = (place){.pc = pc, .function = hkc_cfi_function(pc), .registers = registers};
    places[i].registers &= registers;
    if (places[i].seen < UINT8_MAX) places[i].seen++;
    return &places[i];
}

/* A constructor has stepped over its second word already. */
static bool has_instruction(uintptr_t word, uintptr_t stored)
{
    return word - stored == 0 || word - stored == INSTRUCTION;
}

#if LUA_VERSION_NUM >= 505
/* Few instructions allocate without storing where they are, and they are met often: a word that had one by
 * chance is soon found out. */
enum { SEEN_LEAST_IN_FRAME = 6 };

static void see_words(place *p, const running *r, const hkc_cfi_registers *at,
                      const struct hkl_walk_step *step)
{
    if (!step->ok) {
        p->words = 0;
        return;
    }
    const uintptr_t *frame = (const uintptr_t *)at->sp;
    const uintptr_t cfa = (step->saves.cfa_from_fp ? at->saved[HKC_CFI_FP] : at->sp) + step->saves.cfa_offset;
    const size_t size = (cfa - at->sp) / sizeof *frame - 1; /* on x86-64 the last one is the return address */
    uint64_t words = 0;
    for (size_t i = 0; r->stored && i < size && i < HKL_PC_FRAME_WORDS; i++)
        if (has_instruction(frame[i], *r->stored)) words |= UINT64_C(1) << i;
    p->words = p->seen == 1 ? words : p->words & words;
}

static int word_of(const place *p)
{
    if (p->words == 0 || p->seen < SEEN_LEAST_IN_FRAME) return HKL_PC_STORED;
    return HKL_PC_IN_FRAME + __builtin_ctzll(p->words);
}
#else
static inline void see_words(place *p, const running *r, const hkc_cfi_registers *at,
                             const struct hkl_walk_step *step)
{
    (void)p;
    (void)r;
    (void)at;
    (void)step;
}

static inline int word_of(const place *p)
{
    (void)p;
    return HKL_PC_STORED;
}
#endif

void hkl_pc_see(hkl_walk *rules, lua_State *L, const hkc_cfi_registers *at)
{
    lua_Debug ar;
    running r = {NULL, 0, 0};
    if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "S", &ar)) return;
    if (*ar.what != 'C') {
        r = running_of(L, &ar);
        if (!r.stored || !is_in(&r, *r.stored)) wrong = true;
    }
    if (wrong) return;
    hkc_cfi_registers up = *at;
    for (int i = 0; i < CLIMB_MOST; i++) {
        hkc_cfi_mask registers = 0;
        for (int n = 0; n < HKC_CFI_SAVED && r.stored; n++)
            if (has_instruction(up.saved[n], *r.stored)) registers = (hkc_cfi_mask)(registers | 1 << n);
        place *p = see_place(up.pc, registers);
        const struct hkl_walk_step *step = hkl_thread_rule(rules, up.pc);
        if (p) see_words(p, &r, &up, step);
        if (!step->ok) break;
        hkc_cfi_climb(&up, &step->saves);
    }
}

void hkl_pc_learnt(void)
{
    learnt = !wrong && !hkl_thread_layout_now.luajit && place_count < MAX_PLACES;
}

int hkl_pc_register(uintptr_t pc)
{
    int found = HKL_PC_ELSEWHERE;
    const uintptr_t function = learnt ? hkc_cfi_function(pc) : 0;
    for (int i = 0; i < place_count && function != 0; i++) {
        const place *p = &places[i];
        if (p->function != function || p->seen < SEEN_LEAST) continue;
        const int word = p->registers == 0 ? word_of(p) : HKL_PC_STORED;
        if (p->registers == 0 && word == HKL_PC_STORED) continue;
        if (p->pc == pc) return p->registers == 0 ? word : __builtin_ctz(p->registers);
        found = HKL_PC_STORED;
    }
    return found;
}

/* Whether hkl_pc_register looks at it. */
static bool is_used(const place *p)
{
    return p->seen >= SEEN_LEAST && (p->registers != 0 || word_of(p) != HKL_PC_STORED);
}

static void place_words(hkl_lesson *lesson, place *p)
{
    p->pc = hkl_lesson_address(lesson, p->pc);
    p->function = hkl_lesson_address(lesson, p->function);
    p->registers = (hkc_cfi_mask)hkl_lesson_word(lesson, p->registers);
    p->seen = (uint8_t)hkl_lesson_word(lesson, p->seen);
#if LUA_VERSION_NUM >= 505
    p->words = hkl_lesson_long(lesson, p->words);
#endif
    if (p->registers >> HKC_CFI_SAVED != 0) lesson->broken = true;
}

void hkl_pc_lesson(hkl_lesson *lesson)
{
    size_t count = 0;
    for (int i = 0; i < place_count; i++)
        count += is_used(&places[i]) && hkl_lesson_has(lesson, places[i].pc);
    count = hkl_lesson_count(lesson, count, MAX_PLACES);
    learnt = hkl_lesson_word(lesson, learnt) != 0;
    for (int i = 0; lesson->gives && i < place_count; i++) {
        place p = places[i];
        if (is_used(&p) && hkl_lesson_has(lesson, p.pc)) place_words(lesson, &p);
    }
    if (lesson->gives) return;
    place_count = (int)count;
    for (int i = 0; i < place_count; i++)
        place_words(lesson, &places[i]);
    if (!lesson->broken) return;
    memset(places, 0, sizeof places);
    place_count = 0;
    learnt = false;
}

hkl_pc_patch hkl_pc_correct(hkl_walk *walk, lua_State *L, const lua_Debug *ar, const hkc_cfi_registers *at)
{
    const hkl_pc_patch none = {NULL, 0};
    if (!learnt) return none;
    const running r = running_of(L, ar);
    hkc_cfi_registers up = *at;
    for (int i = 0; r.stored && i < CLIMB_MOST; i++) {
        const struct hkl_walk_step *step = hkl_thread_step(walk, up.pc);
        if (step->instruction >= 0) {
            const int n = step->instruction;
            const uintptr_t pc =
                hkl_pc_in_frame(n) ? ((const uintptr_t *)up.sp)[n - HKL_PC_IN_FRAME] : up.saved[n];
            if (!is_in(&r, pc)) return none;
            const hkl_pc_patch patch = {r.stored, *r.stored};
            *r.stored = pc;
            return patch;
        }
        if (step->instruction == HKL_PC_STORED || !step->ok) return none;
        hkc_cfi_climb(&up, &step->saves);
    }
    return none;
}

#else /* the others store it before all that may allocate */

void hkl_pc_see(hkl_walk *rules, lua_State *L, const hkc_cfi_registers *at)
{
    (void)rules;
    (void)L;
    (void)at;
}

void hkl_pc_learnt(void)
{
}

void hkl_pc_lesson(hkl_lesson *lesson)
{
    (void)lesson;
}

int hkl_pc_register(uintptr_t pc)
{
    (void)pc;
    return HKL_PC_ELSEWHERE;
}

hkl_pc_patch hkl_pc_correct(hkl_walk *walk, lua_State *L, const lua_Debug *ar, const hkc_cfi_registers *at)
{
    (void)walk;
    (void)L;
    (void)ar;
    (void)at;
    return (hkl_pc_patch){NULL, 0};
}

#endif
#endif
