#include "profile/snap_way.h"

#include <string.h>

#if defined(HKC_CFI_WALK) && LUA_VERSION_NUM == 501

enum { CLIMB_MOST = 12, STEPS_MOST = 400, TESTS_MOST = 4, CALL_BYTES = 5, CALL = 0xe8 };

/* SnapShot, in words of 16 bits: mapofs in two, ref, mcofs, nslots and topslot, nent and count. */
enum { SNAPSHOT_BYTES = 12, MAP_AT = 0, CODE_AT = 6, ENTRIES_AT = 10 };

/* Relative to the next instruction. */
static int32_t distance(uint32_t instruction)
{
    return (int32_t)(instruction >> 16) - 0x8000;
}

/* ---- Machine code ----------------------------------------------------------------------------------- */

uintptr_t hkl_snap_pc(hkl_walk *walk, const void *trace, const hkc_cfi_registers *at)
{
    hkc_cfi_registers up = *at;
    for (int i = 0; i < CLIMB_MOST; i++) {
        if (hkl_snap_has(trace, up.pc)) return up.pc;
        const struct hkl_walk_step *step = hkl_thread_step(walk, up.pc);
        if (!step->ok) return 0;
        hkc_cfi_climb(&up, &step->saves);
    }
    return 0;
}

uintptr_t hkl_snap_target(uintptr_t pc)
{
    const uint8_t *call = (const uint8_t *)pc - CALL_BYTES;
    int32_t relative;
    if (*call != CALL) return 0;
    memcpy(&relative, call + 1, sizeof relative);
    return pc + (uintptr_t)(intptr_t)relative;
}

/* The calls of `target` in machine code; the address that the call number `nth` returns to is in *pc. */
static unsigned calls_in(uintptr_t from, uintptr_t to, uintptr_t target, unsigned nth, uintptr_t *pc)
{
    unsigned n = 0;
    for (; from + CALL_BYTES <= to; from++) {
        if (hkl_snap_target(from + CALL_BYTES) != target) continue;
        if (n++ == nth && pc) *pc = from + CALL_BYTES;
    }
    return n;
}

/* A loop's machine code has the loop twice: the first pass still has the guards that later ones do without,
 * and therefore more snapshots. The same call in the first pass; pc itself where that is not sure. */
static uintptr_t in_first_pass(const void *trace, uintptr_t pc, uintptr_t target)
{
    const uintptr_t code = hkl_thread_word(trace, HKL_SNAP_CODE),
                    loop = code + hkl_snap_word32(trace, HKL_SNAP_LOOP);
    const uintptr_t end = code + hkl_snap_word32(trace, HKL_SNAP_SIZE);
    if (loop == code || pc <= loop || target == 0) return pc;
    const unsigned nth = calls_in(loop, pc - CALL_BYTES, target, 0, NULL);
    uintptr_t first = pc;
    const unsigned in_first = calls_in(code, loop, target, nth, &first);
    return in_first == calls_in(loop, end, target, 0, NULL) ? first : pc;
}

/* ---- Snapshots -------------------------------------------------------------------------------------- */

static const void *snapshot(const void *trace, unsigned n)
{
    return (const char *)hkl_thread_word(trace, HKL_SNAP_ALL) + (size_t)n * SNAPSHOT_BYTES;
}

/* The last one that lies before the call that returns to pc. */
static unsigned snapshot_before(const void *trace, uintptr_t pc)
{
    const uintptr_t call = pc - 1 - hkl_thread_word(trace, HKL_SNAP_CODE);
    unsigned n = hkl_snap_word16(trace, HKL_SNAP_COUNT);
    while (n > 1 && hkl_snap_word16(snapshot(trace, n - 1), CODE_AT) > call)
        n--;
    return n - 1;
}

/* The constant of 64 bits with this number. */
static uintptr_t constant(const void *trace, uint32_t number)
{
    return ((const uintptr_t *)hkl_thread_word(trace, HKL_SNAP_IR))[number + 1];
}

/* What the snapshot restores: the slot above bit 24, what it is, the number of its value. */
enum { FRAME = 0x010000, CONTINUATION = 0x020000, SLOT_AT = 24, NUMBER = 0xffff };

/* The instruction that has called the function whose frame's link is entry n; NULL = it is none in Lua, or that
 * is not known. The entry before is the frame's function. */
static const uint32_t *caller_of(const void *trace, const uint32_t *map, unsigned n)
{
    enum { TYPE = 3, LUA = 0, CONTINUES = 2 };
    const uint32_t slot = map[n] >> SLOT_AT;
    const uintptr_t link = constant(trace, map[n] & NUMBER);
    if ((link & TYPE) == LUA) return (const uint32_t *)link - 1;
    if ((link & TYPE) != CONTINUES) return NULL;
    while (n-- > 0) /* the place where a metamethod's caller goes on is two slots below */
        if (map[n] >> SLOT_AT == slot - 2 && (map[n] & CONTINUATION) != 0)
            return (const uint32_t *)constant(trace, map[n] & NUMBER) - 1;
    return NULL;
}

/* The function of the frame whose link is entry n, where the trace is sure of it; 0 = not known. */
static uintptr_t function_of(const void *trace, const uint32_t *map, unsigned n)
{
    enum { CONSTANTS = 0x8000 };
    if (n == 0 || map[n - 1] >> SLOT_AT != (map[n] >> SLOT_AT) - 1 || (map[n - 1] & NUMBER) >= CONSTANTS)
        return 0;
    return constant(trace, map[n - 1] & NUMBER);
}

/* The instruction of a snapshot and those that called, with their functions; closures NULL = without. */
static size_t chain_of(const void *trace, unsigned nth, const uint32_t **places, uintptr_t *closures,
                       size_t room)
{
    const void *snap = snapshot(trace, nth);
    const uint32_t *map =
        (const uint32_t *)hkl_thread_word(trace, HKL_SNAP_MAP) + hkl_snap_word32(snap, MAP_AT);
    const unsigned entries = ((const uint8_t *)snap)[ENTRIES_AT];
    uint64_t instruction; /* above the number of slots */
    size_t n = 0;
    memcpy(&instruction, map + entries, sizeof instruction);
    if (closures) memset(closures, 0, room * sizeof *closures);
    const uint32_t *place = (const uint32_t *)(uintptr_t)(instruction >> 8);
    if (hkl_snap_operation(*place) <= OP_JFUNCV) places[n++] = place; /* else in a function in C */
    for (unsigned i = entries; i-- > 0 && n < room;) {
        if ((map[i] & FRAME) == 0 || map[i] >> SLOT_AT <= 1) continue;
        const uint32_t *caller = caller_of(trace, map, i);
        if (closures && n > 0 && closures[n - 1] == 0) closures[n - 1] = function_of(trace, map, i);
        if (caller) places[n++] = caller;
    }
    return n;
}

/* ---- Functions -------------------------------------------------------------------------------------- */

bool hkl_snap_line_of(const uint32_t *instruction, hkl_snap_line *out)
{
    const uint32_t *first = hkl_snap_first(instruction);
    const char *proto = (const char *)first - HKL_PROTO_BYTES;
    const size_t n = (size_t)(instruction - first);
    const void *lines = (const void *)hkl_thread_word(proto, HKL_PROTO_LINES);
    *out = (hkl_snap_line){(const char *)hkl_thread_word(proto, HKL_PROTO_SOURCE) + HKL_TEXT_AT,
                           (int)hkl_snap_word32(proto, HKL_PROTO_FIRST),
                           (int)hkl_snap_word32(proto, HKL_PROTO_FIRST)};
    if (!lines || n >= hkl_snap_word32(proto, HKL_PROTO_COUNT)) return false;
    if (n == 0) return true;
    const uint32_t span = hkl_snap_word32(proto, HKL_PROTO_SPAN);
    out->line += span < 1 << 8    ? ((const uint8_t *)lines)[n - 1]
                 : span < 1 << 16 ? ((const uint16_t *)lines)[n - 1]
                                  : (int)((const uint32_t *)lines)[n - 1];
    return true;
}

const uint32_t *hkl_snap_begins(const void *trace)
{
    return (const uint32_t *)hkl_thread_word(trace, HKL_SNAP_BEGINS);
}

/* ---- From a snapshot to the instruction that allocates ---------------------------------------------- */

/* Snapshots are only where something was stored, or a guard may fail: the instruction that allocates follows
 * one of them, with nothing between that could not be done again. So from the snapshot on the instructions are
 * gone through as the trace ran them, to the one that allocates as the call does. */
typedef hkl_snap_way way;

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

/* Returns the instruction as it was before a trace that begins there took its place: a loop, or a return. What was
 * compiled before that has run the one that was there. */
static uint32_t word_of(const way *w, const uint32_t *at)
{
    const unsigned op = hkl_snap_operation(*at);
    if (op != OP_JFORL && op != OP_JITERL && op != OP_JLOOP) return *at;
    const void *begins = hkl_snap_trace(w->global, (int32_t)(*at >> 16));
    return begins ? hkl_snap_word32(begins, HKL_SNAP_BEGINS_WITH) : *at;
}

static unsigned operation_of(const way *w, const uint32_t *at)
{
    return hkl_snap_operation(word_of(w, at));
}

/* Whether the instruction may call what the machine code calls. Functions of the libraries are known by the names
 * under which they are called. */
static bool is_wanted(const way *w, const uint32_t *at)
{
    static const char *const joins[] = {"format", "rep", "upper", "lower", "reverse", "concat", NULL};
    static const char *const parts[] = {"sub", "string", NULL};
    const hkl_trace_layout *layout = &hkl_trace_layout_now;
    const uintptr_t target = w->target;
    const unsigned op = operation_of(w, at);
    const bool calls = op >= OP_CALLM && op <= OP_ITERN;
    const char *name = calls ? hkl_snap_name(at) : NULL;
    if (target != 0 && target == layout->new_table) return op == OP_TNEW;
    if (target != 0 && target == layout->copy_table) return op == OP_TDUP;
    if (target != 0 && target == layout->join) return op == OP_CAT || (name && is_one_of(name, joins));
    if (target != 0 && (target == layout->integer_text || target == layout->number_text))
        return name && strcmp(name, "tostring") == 0;
    if (target != 0 && target == layout->part) return name && is_one_of(name, parts);
    if (op == OP_TNEW || op == OP_TDUP)
        return target == 0 || layout->new_table == 0 || layout->copy_table == 0;
    return op == OP_CAT || calls || (op >= OP_TSETV && op <= OP_TSETR);
}

static uint32_t count_of(const uint32_t *first)
{
    return hkl_snap_word32((const char *)first - HKL_PROTO_BYTES, HKL_PROTO_COUNT);
}

static bool has_wanted(const way *w, const uint32_t *first)
{
    for (uint32_t i = 1; i < count_of(first); i++)
        if (is_wanted(w, first + i)) return true;
    return false;
}

/* A tail call leaves its caller no frame. */
static void go_in(way *w, unsigned op, const hkl_snap_callee *callee)
{
    if (op != OP_CALLMT && op != OP_CALLT) {
        memmove(w->places + 1, w->places, w->depth * sizeof *w->places);
        memmove(w->closures + 1, w->closures, w->depth * sizeof *w->closures);
        w->depth++;
    }
    w->places[0] = callee->first;
    w->closures[0] = callee->closure;
}

static bool runs(const way *w, const uint32_t *first)
{
    size_t i = 0;
    while (i < w->depth && hkl_snap_first(w->places[i]) != first)
        i++;
    return i < w->depth;
}

/* Whether the instruction calls a function that is inlined; then this is where it is. The next snapshot may be
 * in it: any instruction may call a metamethod. */
static bool enter(way *w, unsigned op, bool guess)
{
    const uint32_t *places[HKL_SNAP_DEPTH];
    hkl_snap_callee callee = {.name = NULL};
    size_t n = 0;
    if (w->depth == HKL_SNAP_DEPTH) return false;
    const bool calls = op >= OP_CALLM && op <= OP_ITERN;
    guess = guess && ((op >= OP_UNM && op <= OP_CAT) || (op >= OP_TGETV && op <= OP_TSETR));
    if (calls) callee = hkl_snap_called(w);
    if (w->next < hkl_snap_word16(w->trace, HKL_SNAP_COUNT))
        n = chain_of(w->trace, w->next, places, NULL, HKL_SNAP_DEPTH);
    if (n > w->depth && places[n - w->depth] == w->places[0]) {
        const uint32_t *first = hkl_snap_first(places[n - w->depth - 1]);
        if (first != callee.first) callee = (hkl_snap_callee){.first = first};
    } else if (!calls && !guess) {
        return false;
    }
    if (!callee.first && !callee.in_c) {
        callee = hkl_snap_only(w, has_wanted);
        if (callee.first && runs(w, callee.first)) return false;
    }
    if (!callee.first || !has_wanted(w, callee.first)) return false;
    go_in(w, op, &callee);
    return true;
}

/* To the instruction that ran next; false = that is not known. */
static bool step(way *w)
{
    const uint32_t *at = w->places[0], *first = hkl_snap_first(at), word = word_of(w, at);
    const unsigned op = hkl_snap_operation(word);
    if (op <= OP_ISF || op == OP_CALLMT || op == OP_CALLT) return false;
    if (op >= OP_RETM && op <= OP_RET1) {
        if (w->depth < 2) return false;
        memmove(w->places, w->places + 1, --w->depth * sizeof *w->places);
        memmove(w->closures, w->closures + 1, w->depth * sizeof *w->closures);
        first = hkl_snap_first(w->places[0]++);
        return w->places[0] < first + count_of(first);
    }
    const bool jumps = op == OP_JMP || op == OP_UCLO || op == OP_ISNEXT || (op >= OP_FORL && op <= OP_JITERL);
    w->places[0] = at + 1 + (jumps ? distance(word) : 0);
    return w->places[0] > first && w->places[0] < first + count_of(first);
}

/* Whether the trace is at its next snapshot. */
static bool is_at_next(const way *w)
{
    const uint32_t *places[HKL_SNAP_DEPTH];
    if (w->next >= hkl_snap_word16(w->trace, HKL_SNAP_COUNT)) return false;
    const size_t n = chain_of(w->trace, w->next, places, NULL, HKL_SNAP_DEPTH);
    return n == w->depth && places[0] == w->places[0];
}

static bool is_known(uintptr_t target)
{
    const hkl_trace_layout *l = &hkl_trace_layout_now;
    const uintptr_t all[] = {l->new_table, l->copy_table, l->join, l->integer_text, l->number_text, l->part};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (target != 0 && target == all[i]) return true;
    return false;
}

/* The search for the instruction that allocates: `skip` others that call the same come before. Where the function is
 * not known that the machine code calls, only instructions of the kind that comes first are taken for those. */
typedef struct search {
    unsigned skip, kind; /* kind 0 = none was met */
    bool guess;          /* enters metamethods of which no snapshot tells */
    bool known;          /* the function that the machine code calls */
    unsigned ways;  /* which way to take behind each test, the first one in the highest bit: 1 = the jump */
    unsigned tests; /* that were met */
    int steps;      /* on all ways that were tried */
} search;

/* A test of what the compiler knows, such as the constant that an inlined function has returned, has no guard, so that
 * nothing says which way the trace went. A test with a guard has a snapshot, which names the way that the trace did not
 * go: nothing is searched behind that. */
static bool take_way(way *w, search *s)
{
    const uint32_t *jump = w->places[0] + 1, *first = hkl_snap_first(jump), *end = first + count_of(first);
    if (s->tests == TESTS_MOST || jump + 1 >= end || operation_of(w, jump) != OP_JMP) return false;
    const uint32_t *const behind[] = {jump + 1, jump + 1 + distance(*jump)};
    for (int i = 0; i < 2; i++) {
        w->places[0] = behind[i];
        if (behind[i] <= first || behind[i] >= end || is_at_next(w)) return false;
    }
    s->tests++;
    w->places[0] = behind[s->ways >> (TESTS_MOST - s->tests) & 1];
    return true;
}

static bool find_on_way(way *w, search *s)
{
    for (bool begun = false; s->steps < STEPS_MOST; s->steps++, begun = true) {
        const unsigned op = operation_of(w, w->places[0]);
        if (begun && is_at_next(w)) return false;
        if (op <= OP_ISF) {
            if (!take_way(w, s)) return false;
            continue;
        }
        if (enter(w, op, s->guess)) continue;
        const bool wanted = is_wanted(w, w->places[0]);
        if (wanted && s->kind == 0) s->kind = op;
        if (wanted && (s->known || op == s->kind) && s->skip-- == 0) return true;
        if (!step(w)) return false;
    }
    return false;
}

static bool leads_to_next(way *w, search *s)
{
    for (; s->steps < STEPS_MOST && step(w); s->steps++)
        if (is_at_next(w)) return true;
    return false;
}

/* The right way leads to an instruction that allocates, and from there to the next snapshot. Where none does both, the
 * first one that leads to such an instruction is taken. */
static bool find_wanted(const way *from, way *found, unsigned skip, bool guess)
{
    search s = {.guess = guess, .known = is_known(from->target)};
    bool any = false;
    while (s.ways < 1u << TESTS_MOST) {
        way w = *from;
        s.skip = skip;
        s.kind = s.tests = 0;
        if (find_on_way(&w, &s)) {
            const way here = w;
            const bool sure = leads_to_next(&w, &s);
            if (!any || sure) *found = here;
            any = true;
            if (sure) break;
        }
        s.ways += 1u << (TESTS_MOST - s.tests); /* that differ in tests that were not met are the same */
    }
    return any;
}

size_t hkl_snap_places(const void *global, const void *trace, uintptr_t pc, const uint32_t **places,
                       size_t room)
{
    const uintptr_t code = hkl_thread_word(trace, HKL_SNAP_CODE);
    way w = {.global = global, .trace = trace, .target = hkl_snap_target(pc)};
    if (!hkl_trace_layout_now.has_snapshots || hkl_snap_word16(trace, HKL_SNAP_COUNT) == 0) return 0;
    pc = in_first_pass(trace, pc, w.target);
    const unsigned nth = snapshot_before(trace, pc);
    w.depth = chain_of(trace, nth, w.places, w.closures, HKL_SNAP_DEPTH);
    w.next = nth + 1;
    if (w.depth == 0) return 0;
    if (w.closures[w.depth - 1] == 0) w.closures[w.depth - 1] = hkl_snap_base_function(global);
    unsigned skip = 0;
    if (w.target != 0)
        skip = calls_in(code + hkl_snap_word16(snapshot(trace, nth), CODE_AT), pc - CALL_BYTES, w.target, 0,
                        NULL);
    way found = w;
    find_wanted(&w, &found, skip, false);
    if (found.places[0] == w.places[0] && !is_wanted(&w, w.places[0])) {
        found = w;
        find_wanted(&w, &found, skip, true);
    }
    const size_t n = found.depth < room ? found.depth : room;
    memcpy(places, found.places, n * sizeof *places);
    return n;
}

#endif
