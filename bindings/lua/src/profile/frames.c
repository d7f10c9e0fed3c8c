#include "profile/frames.h"

#include "profile/key.h"
#include "profile/pc.h"
#include "profile/snap.h"
#include "profile/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most of a source that is kept, and that two sources are told apart by. */
enum { SOURCE_MOST = 1023, TEXT_SLOTS = 1024, SOURCE_SLOTS = 64, FIRST_ENTRIES = 256, UNNAMED_MOST = 16 };

typedef struct text {
    struct text *next;
    size_t length;
    char chars[];
} text;

typedef struct entry {
    hak_lua_frame frame;
    uint32_t next;    /* with the same hash; 0 = none */
    uint32_t unnamed; /* how often a caller had no name for it */
} entry;

/* A source as the runtime has it, and the text that was made of it. The runtime's may be gone and another one
 * in its place. */
typedef struct source {
    const char *of, *is;
} source;

struct hkl_frames {
    size_t bytes, most;
    text *texts[TEXT_SLOTS];
    source sources[SOURCE_SLOTS];
    entry *entries; /* [0] unused */
    uint32_t count, room;
    uint32_t *slots; /* room of them, a power of 2: the first entry of each hash */
};

static const hak_lua_frame full = {.kind = HAK_LUA_FRAME_UNKNOWN, .source = "", .function = ""};

static bool grow(hkl_frames *f, uint32_t room)
{
    const size_t more = (room - f->room) * (sizeof(entry) + sizeof(uint32_t));
    if (f->bytes + more > f->most) return false;
    uint32_t *slots = calloc(room, sizeof *slots);
    entry *entries = slots ? realloc(f->entries, room * sizeof *entries) : NULL;
    if (!entries) {
        free(slots);
        return false;
    }
    free(f->slots);
    f->bytes += more;
    f->entries = entries;
    f->slots = slots;
    f->room = room;
    return true;
}

hkl_frames *hkl_frames_new(size_t most_bytes)
{
    hkl_frames *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->bytes = sizeof *f;
    f->most = most_bytes;
    f->count = 1;
    if (!grow(f, FIRST_ENTRIES)) {
        free(f);
        return NULL;
    }
    return f;
}

void hkl_frames_bound(hkl_frames *f, size_t most_bytes)
{
    f->most = most_bytes;
}

void hkl_frames_delete(hkl_frames *f)
{
    if (!f) return;
    for (size_t i = 0; i < TEXT_SLOTS; i++) {
        while (f->texts[i]) {
            text *t = f->texts[i];
            f->texts[i] = t->next;
            free(t);
        }
    }
    free(f->entries);
    free(f->slots);
    free(f);
}

size_t hkl_frames_bytes(const hkl_frames *f)
{
    return f->bytes;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The text that is kept for it; NULL = no room. */
static const char *keep(hkl_frames *f, const char *chars, size_t length)
{
    if (length == 0) return "";
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = hash * 31 + (unsigned char)chars[i];
    text **slot = &f->texts[mix(0, hash) % TEXT_SLOTS];
    for (text *t = *slot; t; t = t->next)
        if (t->length == length && memcmp(t->chars, chars, length) == 0) return t->chars;
    const size_t bytes = sizeof(text) + length + 1;
    text *t = f->bytes + bytes <= f->most ? malloc(bytes) : NULL;
    if (!t) return NULL;
    f->bytes += bytes;
    t->next = *slot;
    t->length = length;
    memcpy(t->chars, chars, length);
    t->chars[length] = '\0';
    *slot = t;
    return t->chars;
}

static const char *keep_text(hkl_frames *f, const char *chars)
{
    return chars ? keep(f, chars, strnlen(chars, SOURCE_MOST)) : "";
}

static uint32_t *slot_of(hkl_frames *f, const hak_lua_frame *frame)
{
    uint64_t hash = mix((uint64_t)frame->kind, (uintptr_t)frame->source);
    hash = mix(hash, (uint64_t)(uint32_t)frame->line << 32 | (uint32_t)frame->defined);
    if (frame->kind == HAK_LUA_FRAME_C) hash = mix(hash, (uintptr_t)frame->function);
    return &f->slots[hash & (f->room - 1)];
}

/* What a function is called is its caller's matter, but for those in C, of which nothing else is known. */
static bool is_same(const hak_lua_frame *a, const hak_lua_frame *b)
{
    return a->source == b->source && a->line == b->line && a->defined == b->defined && a->kind == b->kind &&
           (a->kind != HAK_LUA_FRAME_C || a->function == b->function);
}

static uint32_t find(hkl_frames *f, const hak_lua_frame *frame)
{
    uint32_t i = *slot_of(f, frame);
    while (i != 0 && !is_same(&f->entries[i].frame, frame))
        i = f->entries[i].next;
    return i;
}

static uint32_t add(hkl_frames *f, const hak_lua_frame *frame)
{
    if (f->count == f->room) {
        if (!grow(f, f->room * 2)) return 0;
        for (uint32_t i = 1; i < f->count; i++) {
            uint32_t *slot = slot_of(f, &f->entries[i].frame);
            f->entries[i].next = *slot;
            *slot = i;
        }
    }
    uint32_t *slot = slot_of(f, frame);
    f->entries[f->count] = (entry){*frame, *slot, 0};
    return *slot = f->count++;
}

static uintptr_t numbered(uint32_t index)
{
    return HKL_FRAME_BIT | index;
}

uintptr_t hkl_frames_number(hkl_frames *f, const hak_lua_frame *frame)
{
    hak_lua_frame own = *frame;
    own.source = keep_text(f, frame->source);
    own.function = keep_text(f, frame->function);
    if (!own.source || !own.function) return numbered(0);
    uint32_t i = find(f, &own);
    return numbered(i != 0 ? i : add(f, &own));
}

const hak_lua_frame *hkl_frames_at(const hkl_frames *f, uintptr_t number)
{
    const uintptr_t i = number & ~HKL_FRAME_BIT;
    if ((number & HKL_FRAME_BIT) == 0 || i >= f->count) return NULL;
    return i == 0 ? &full : &f->entries[i].frame;
}

bool hkl_frames_settled(const hkl_frames *f, uintptr_t number)
{
    const uintptr_t i = number & ~HKL_FRAME_BIT;
    if (i == 0 || i >= f->count) return false;
    const entry *e = &f->entries[i];
    return e->frame.kind == HAK_LUA_FRAME_C || e->frame.function[0] != '\0' || e->unnamed == UNNAMED_MOST;
}

/* ---- The walk --------------------------------------------------------------------------------------- */

#ifdef HKC_CFI_WALK

static const char *source_of(hkl_frames *f, const lua_Debug *ar)
{
    source *s = &f->sources[((uintptr_t)ar->source >> 4) % SOURCE_SLOTS];
    if (s->of == ar->source && strncmp(s->is, ar->source, SOURCE_MOST) == 0) return s->is;
    /* of a chunk that is no file the source is its text, and may be long */
    const bool file = *ar->source == '@' || *ar->source == '=';
    const char *is = keep_text(f, file ? ar->source : ar->short_src);
    if (is && file) *s = (source){ar->source, is};
    return is;
}

/* lua_getinfo looks the name up in the caller's code. */
static const char *name_of(hkl_frames *f, lua_State *L, lua_Debug *ar)
{
    ar->name = NULL;
    return lua_getinfo(L, "n", ar) ? keep_text(f, ar->name) : "";
}

/* The number of a frame of which all is known but what it is called. */
static uintptr_t number_of(hkl_frames *f, lua_State *L, lua_Debug *ar, hak_lua_frame frame)
{
    if (!frame.source || !frame.function) return numbered(0);
    uint32_t i = find(f, &frame);
    if (frame.kind == HAK_LUA_FRAME_C) return numbered(i != 0 ? i : add(f, &frame));
    if (i == 0) i = add(f, &frame);
    entry *e = &f->entries[i];
    if (i != 0 && e->frame.function[0] == '\0' && e->unnamed < UNNAMED_MOST) {
        const char *name = name_of(f, L, ar);
        if (name) e->frame.function = name;
        e->unnamed++;
    }
    return numbered(i);
}

/* The same without asking. */
static inline uintptr_t number_unnamed(hkl_frames *f, const hak_lua_frame *frame)
{
    if (!frame->source) return numbered(0);
    const uint32_t i = find(f, frame);
    return numbered(i != 0 ? i : add(f, frame));
}

static uintptr_t number_in_c(hkl_frames *f, lua_State *L, lua_Debug *ar)
{
    return number_of(f, L, ar, (hak_lua_frame){HAK_LUA_FRAME_C, "", name_of(f, L, ar), 0, 0});
}

static uintptr_t number_in_lua(hkl_frames *f, lua_State *L, lua_Debug *ar)
{
    const int line = ar->currentline > 0 ? ar->currentline : ar->linedefined;
    return number_of(f, L, ar,
                     (hak_lua_frame){HAK_LUA_FRAME_LUA, source_of(f, ar), "", line, ar->linedefined});
}

static uintptr_t number_of_mark(hkl_frames *f, hak_lua_frame_kind kind)
{
    return hkl_frames_number(f, &(hak_lua_frame){kind, "", "", 0, 0});
}

#if LUA_VERSION_NUM == 501

/* As the runtime makes short_src: of a chunk that is no file the first line. */
static const char *text_of_source(hkl_frames *f, const char *of)
{
    enum { MOST = LUA_IDSIZE - 12, MOST_CUT = LUA_IDSIZE - 15 };
    char short_text[LUA_IDSIZE];
    const lua_Debug ar = {.source = of};
    int length = 0;
    if (*of == '@' || *of == '=') return source_of(f, &ar);
    while (length < MOST && (unsigned char)of[length] >= ' ')
        length++;
    const bool cut = of[length] != '\0';
    if (cut && length > MOST_CUT) length = MOST_CUT;
    snprintf(short_text, sizeof short_text, "[string \"%.*s%s\"]", length, of, cut ? "..." : "");
    return keep_text(f, short_text);
}

/* The functions that run on the trace, from the innermost on: those that are inlined, and the one in whose
 * frame it began, which is at level 0. */
static size_t numbers_of_trace(hkl_frames *f, const hkl_asker *asker, const void *trace, lua_Debug *ar,
                               unsigned most, uintptr_t *out)
{
    const uint32_t *places[HKL_SNAP_DEPTH];
    hkl_snap_line line;
    hak_lua_frame frame = {.kind = HAK_LUA_FRAME_LUA, .function = ""};
    const uintptr_t pc = hkl_snap_pc(asker->walk, trace, asker->at);
    size_t n = pc != 0 ? hkl_snap_places(hkl_trace_global(asker->L), trace, pc, places, HKL_SNAP_DEPTH) : 0;
    if (n == 0) {
        frame.kind = HAK_LUA_FRAME_TRACE;
        places[n++] = hkl_snap_begins(trace);
    }
    size_t given = 0;
    for (; given < n && given < most; given++) {
        hkl_snap_line_of(places[given], &line);
        frame.source = text_of_source(f, line.source);
        frame.line = line.line;
        frame.defined = line.defined;
        const bool at_level = given == n - 1 && n < HKL_SNAP_DEPTH && hkl_key_has_function(asker->L, ar);
        out[given] = at_level ? number_of(f, asker->L, ar, frame) : number_unnamed(f, &frame);
    }
    return given;
}

#endif

/* The same where the trace is not known: the function in whose frame it began. */
static uintptr_t number_of_trace(hkl_frames *f, lua_State *L, lua_Debug *ar)
{
    if (!hkl_key_has_function(L, ar) || !lua_getinfo(L, "S", ar)) return numbered(0);
    return number_of(
        f, L, ar,
        (hak_lua_frame){HAK_LUA_FRAME_TRACE, source_of(f, ar), "", ar->linedefined, ar->linedefined});
}

/* Level 0 may be at another place than the runtime has stored. */
static bool ask(const hkl_asker *asker, int level, lua_Debug *ar)
{
    lua_State *L = asker->L;
    if (level != 0) return lua_getinfo(L, "Sl", ar);
    if (!lua_getinfo(L, "S", ar)) return false;
    const bool in_c = *ar->what == 'C';
    const hkl_pc_patch patch = in_c ? (hkl_pc_patch){NULL, 0} : hkl_pc_correct(asker->walk, L, ar, asker->at);
    const bool ok = lua_getinfo(L, "l", ar);
    hkl_pc_restore(patch);
    return ok;
}

/* Level 0 runs on a trace. */
static size_t walk_trace(hkl_frames *f, int32_t number, const hkl_asker *asker, lua_Debug *ar, unsigned most,
                         uintptr_t *out)
{
#if LUA_VERSION_NUM == 501
    const void *trace = hkl_snap_trace(hkl_trace_global(asker->L), number);
    if (trace) return numbers_of_trace(f, asker, trace, ar, most, out);
#else
    (void)number;
    (void)most;
#endif
    *out = number_of_trace(f, asker->L, ar);
    return 1;
}

/* A coroutine runs no function yet when the runtime makes the record of its first call: that is the one at the
 * bottom of its stack. 0 = it is another case, such as a chunk that is being loaded there. LuaJIT has no such
 * records, and would move the stack for the values that are pushed. */
static size_t number_of_first(hkl_frames *f, lua_State *L, uintptr_t *out, size_t room)
{
#if LUA_VERSION_NUM >= 502
    enum { PUSHED = 2, VALUE = 16 };
    lua_Debug ar;
    if (room == 0 || lua_status(L) != 0 || !lua_isfunction(L, 1) || lua_iscfunction(L, 1)) return 0;
    const void *call = hkl_key_call(L);
    const uintptr_t values = hkl_thread_word(call, HKL_CALL_TOP) - hkl_thread_word(call, HKL_CALL_FUNCTION);
    if ((uintptr_t)lua_gettop(L) + PUSHED >= values / VALUE) return 0;
    if (hkl_thread_word(lua_topointer(L, 1), HKL_CLOSURE_PROTO) == 0) return 0;
    const bool main = lua_pushthread(L);
    lua_pop(L, 1);
    if (main) return 0;
    lua_pushvalue(L, 1);
    if (!lua_getinfo(L, ">S", &ar) || ar.linedefined == 0) return 0;
    const hak_lua_frame frame = {HAK_LUA_FRAME_LUA, source_of(f, &ar), "", ar.linedefined, ar.linedefined};
    *out = number_unnamed(f, &frame);
    return 1;
#else
    (void)f, (void)L, (void)out, (void)room;
    return 0;
#endif
}

static size_t walk(hkl_frames *f, int32_t trace, const hkl_asker *asker, unsigned most, uintptr_t *out,
                   size_t room)
{
    lua_State *L = asker->L;
    lua_Debug ar;
    size_t n = 0;
    unsigned in_lua = 0;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        if (n == room || in_lua == most) {
            if (most > 1 && room > 0) {
                if (n == room) n--;
                out[n++] = number_of_mark(f, HAK_LUA_FRAME_CUT);
            }
            break;
        }
        if (level == 0 && trace != 0) {
            n = walk_trace(f, trace, asker, &ar, room < most ? (unsigned)room : most, out);
            in_lua = (unsigned)n;
            continue;
        }
        if (!hkl_key_has_function(L, &ar)) continue;
        if (!ask(asker, level, &ar) || *ar.what == 't') continue; /* 5.1: a call that a tail call has left */
        const bool in_c = *ar.what == 'C';
        out[n++] = in_c ? number_in_c(f, L, &ar) : number_in_lua(f, L, &ar);
        in_lua += !in_c;
    }
    return n;
}

/* The same of a stack that the runtime is about to move. Nothing but lua_getstack and lua_getinfo looks at the
 * records meanwhile; a name is looked up in the record below, and one more is looked at for the mark of a cut. */
static size_t walk_moving(hkl_frames *f, const hkl_asker *asker, unsigned most, uintptr_t *out, size_t room)
{
#if LUA_VERSION_NUM >= 504
    enum { BELOW = 2 };
    const uintptr_t bottom = hkl_thread_word(asker->L, hkl_thread_layout_now.stack_at);
    hkl_key_shift(asker->L, room + BELOW, bottom);
    const size_t n = walk(f, 0, asker, most, out, room);
    hkl_key_shift(asker->L, room + BELOW, 0 - bottom);
    return n;
#else
    return walk(f, 0, asker, most, out, room);
#endif
}

size_t hkl_frames_walk(hkl_frames *f, const hkl_asker *asker, unsigned most, uintptr_t *out, size_t room)
{
    if (hkl_key_moves(asker->L)) return walk_moving(f, asker, most, out, room);
    uintptr_t base;
    const void *global = (const void *)hkl_thread_word(asker->L, hkl_thread_layout_now.global_at);
    const int32_t trace = hkl_trace_running(global, &base);
    /* Of another thread than the trace's is a stack that the collector moves. */
    if (trace == 0 || !hkl_trace_runs_on(global, asker->L)) {
        const size_t n = walk(f, 0, asker, most, out, room);
        return n != 0 ? n : number_of_first(f, asker->L, out, room);
    }
    /* as the runtime does before it raises an error from a trace */
    uintptr_t *stack = (uintptr_t *)(void *)((char *)asker->L + hkl_trace_layout_now.base_at);
    const uintptr_t before = *stack;
    *stack = base;
    const size_t n = walk(f, trace, asker, most, out, room);
    *stack = before;
    return n;
}

#endif
