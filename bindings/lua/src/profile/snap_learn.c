/* The lesson of snap.c: a few loops of which it is known what stands where. */
#include "profile/snap.h"

#include "readable.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>

#if defined(HKC_CFI_WALK) && LUA_VERSION_NUM == 501

enum { TURNS = 60, SIZES = 8, LEAST = TURNS / 2 };

/* What was allocated by machine code: a size, and where. */
typedef struct size_seen {
    size_t size;
    unsigned count;
    int line, caller; /* caller 0: no function was inlined */
} size_seen;

/* One process learns once. */
static struct {
    lua_State *L; /* NULL = nothing is learnt now */
    const char *end;
    hkl_walk walk;
    bool wrong;
    unsigned count;
    uintptr_t target; /* of the last call */
    uintptr_t inner;  /* a function that will be inlined */
    size_seen sizes[SIZES];
} lesson;

/* Whether the word at `at` of what all threads share leads to the trace with that number, in whose machine code
 * the allocation is. */
static bool leads_to(const char *global, size_t at, int32_t number, const hkc_cfi_registers *registers)
{
    const uintptr_t word = hkl_thread_word(global, at), entry = word + (size_t)number * sizeof word;
    if (word < 4096 || word % sizeof word != 0 || !hkc_readable((const void *)entry, sizeof word))
        return false;
    const uintptr_t trace = hkl_thread_word((const void *)entry, 0);
    if (trace < 4096 || trace % sizeof word != 0 || !hkc_readable((const void *)trace, HKL_SNAP_BYTES))
        return false;
    const uint8_t *bytes = (const uint8_t *)trace;
    uint16_t own;
    memcpy(&own, bytes + HKL_SNAP_NUMBER, sizeof own);
    return bytes[HKL_SNAP_KIND_AT] == HKL_SNAP_KIND && own == number &&
           hkl_snap_pc(&lesson.walk, (const void *)trace, registers) != 0;
}

static void find_traces(const char *global, int32_t number, const hkc_cfi_registers *registers)
{
    uint16_t *const found = &hkl_trace_layout_now.traces_at;
    for (size_t at = 0; global + at + sizeof(uintptr_t) <= lesson.end && *found == 0; at += sizeof(uintptr_t))
        if (leads_to(global, at, number, registers)) *found = (uint16_t)at;
    if (*found == 0) lesson.wrong = true;
}

static void note_size(size_t size, int line, int caller)
{
    size_seen *s = lesson.sizes;
    while (s < lesson.sizes + SIZES && s->count > 0 && s->size != size)
        s++;
    if (s == lesson.sizes + SIZES) {
        lesson.wrong = true;
        return;
    }
    if (s->count == 0) *s = (size_seen){size, 0, line, caller};
    else if (s->caller == 0) s->caller = caller; /* a trace of its own came first */
    else if (caller != 0 && s->caller != caller) lesson.wrong = true;
    if (s->line != line) lesson.wrong = true;
    else s->count++;
}

static void see_line(const char *global, const void *trace, uintptr_t pc, size_t size)
{
    const uint32_t *places[HKL_SNAP_DEPTH];
    hkl_snap_line line, caller = {NULL, 0, 0};
    const size_t n = hkl_snap_places(global, trace, pc, places, HKL_SNAP_DEPTH);
    if (n == 0 || n > 2 || !hkl_snap_line_of(places[0], &line) ||
        (n == 2 && !hkl_snap_line_of(places[1], &caller)))
        lesson.wrong = true;
    else note_size(size, line.line, caller.line);
}

/* A constant that is an object takes two words, what it is and the object. */
static void find_object_constant(const void *trace)
{
    enum { FROM_AT = 40, END = 0x8000, OP_AT = 5 };
    const uintptr_t *all = (const uintptr_t *)hkl_thread_word(trace, HKL_SNAP_IR);
    for (uint32_t n = *(const uint32_t *)(const void *)((const char *)trace + FROM_AT); n + 1 < END; n++)
        if (lesson.inner != 0 && all[n + 1] == lesson.inner)
            hkl_trace_layout_now.object_constant = ((const uint8_t *)&all[n])[OP_AT];
}

void hkl_snap_see(size_t size)
{
    uintptr_t base;
    hkc_cfi_registers at;
    if (!lesson.L || lesson.wrong) return;
    const char *global = hkl_trace_global(lesson.L);
    const int32_t number = hkl_trace_running(global, &base);
    if (number <= 0) return;
    hkc_cfi_here(&at);
    const struct hkl_walk_step *step = hkl_thread_step(&lesson.walk, at.pc);
    if (!step->ok) return;
    hkc_cfi_climb(&at, &step->saves);
    if (hkl_trace_layout_now.traces_at == 0) find_traces(global, number, &at);
    if (lesson.wrong) return;
    const void *trace = hkl_snap_trace(global, number);
    const uintptr_t pc = hkl_snap_pc(&lesson.walk, trace, &at);
    lesson.target = pc != 0 ? hkl_snap_target(pc) : 0;
    if (pc == 0) lesson.wrong = true;
    if (hkl_trace_layout_now.object_constant == 0) find_object_constant(trace);
    if (pc != 0 && hkl_trace_layout_now.has_snapshots) see_line(global, trace, pc, size);
    lesson.count++;
}

/* Runs a chunk that returns a function of a number, and that function; how many allocations were seen. */
static unsigned run(lua_State *L, const char *code, size_t length)
{
    if (luaL_loadbuffer(L, code, length, "=lesson") != 0) lua_error(L);
    lua_call(L, 0, 1);
    lesson.inner = 0;
    const char *name;
    for (int n = 1; (name = lua_getupvalue(L, -1, n)) != NULL; n++) {
        if (strcmp(name, "inner") == 0) lesson.inner = (uintptr_t)lua_topointer(L, -1);
        lua_pop(L, 1);
    }
    lua_pushinteger(L, TURNS);
    lesson.L = L;
    lesson.count = 0;
    lesson.target = 0;
    const int failed = lua_pcall(L, 1, 0, 0);
    lesson.L = NULL;
    if (failed) lua_error(L);
    return lesson.wrong ? 0 : lesson.count;
}

/* By size, from the smallest on. */
static void sort(void)
{
    for (int i = 1; i < SIZES; i++)
        for (int j = i; j > 0 && lesson.sizes[j].count > 0 && lesson.sizes[j].size < lesson.sizes[j - 1].size;
             j--) {
            const size_seen larger = lesson.sizes[j - 1];
            lesson.sizes[j - 1] = lesson.sizes[j];
            lesson.sizes[j] = larger;
        }
}

static bool is_right(void)
{
    static const struct {
        int line, caller;
    } truth[] = {{9, 0}, {10, 0}, {3, 11}, {12, 0}};
    enum { KINDS = sizeof truth / sizeof truth[0] };
    sort();
    for (int i = 0; i < KINDS; i++)
        if (lesson.sizes[i].line != truth[i].line || lesson.sizes[i].caller != truth[i].caller ||
            lesson.sizes[i].count < LEAST)
            return false;
    return lesson.sizes[KINDS].count == 0;
}

void hkl_snap_learn(lua_State *L, const char *end)
{
    static const char lines[] = "local keep = {0, 0, 0, 0}\n"
                                "local function inner(i)\n"
                                "  local t = {i, i, i, i, i}\n"
                                "  return t\n"
                                "end\n"
                                "return function(n)\n"
                                "  for i = 1, n do\n"
                                "    local j = i + 1\n"
                                "    keep[1] = {j}\n"
                                "    keep[2] = {j, j, j}\n"
                                "    keep[3] = inner(j)\n"
                                "    keep[4] = {1, 2, 3, 4, 5, 6, 7, 8}\n"
                                "  end\n"
                                "end\n";
    hkl_trace_layout *layout = &hkl_trace_layout_now;
    lesson.end = end;
    const struct {
        const char *allocates;
        uintptr_t *target;
    } kinds[] = {{"{i}", &layout->new_table},
                 {"{1}", &layout->copy_table},
                 {"'hakmem' .. i", &layout->join},
                 {"tostring(i + 1000)", &layout->integer_text},
                 {"tostring(i + 0.5)", &layout->number_text},
                 {"text:sub(1, i)", &layout->part}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char code[256];
        snprintf(code, sizeof code,
                 "local keep, text = {0}, ('hakmem'):rep(100) "
                 "return function(n) for i = 1, n do keep[1] = %s end end",
                 kinds[i].allocates);
        if (run(L, code, strlen(code)) >= LEAST) *kinds[i].target = lesson.target;
    }
    if (lesson.wrong) layout->traces_at = 0;
    layout->has_snapshots = layout->traces_at != 0;
    if (layout->has_snapshots) layout->has_snapshots = run(L, lines, sizeof lines - 1) > 0 && is_right();
}

#endif
