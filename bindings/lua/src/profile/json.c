/* The report of a state as JSON. */
#include "common/profile_json.h"
#include "common/report_json.h"
#include "hakmem/lua.h"
#include "profile/frames.h"
#include "profile/live.h"
#include "profile/profile.h"
#include "profile/thread.h"
#if defined(_WIN32) || defined(__APPLE__) /* where no frames of Lua are found */
#define NATIVE_NAMES
#include "frame.h"
#endif

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOST_FUNCTION 256

typedef struct namer {
    const hkl_frames *frames; /* NULL = none */
    char function[MOST_FUNCTION];
#ifdef NATIVE_NAMES
    hkc_names native;
#endif
} namer;

static int put(void *to, const char *bytes, size_t n)
{
    errno = EIO;
    return fwrite(bytes, 1, n, to) == n ? 0 : errno;
}

/* Without the mark of a file. */
static const char *file_of(const hak_lua_frame *f)
{
    return f->source + (*f->source == '@' || *f->source == '=');
}

static const char *function_of(namer *n, const hak_lua_frame *f)
{
    const char *name = f->function;
    switch (f->kind) {
    case HAK_LUA_FRAME_UNKNOWN:
        return "(no room for its name)";
    case HAK_LUA_FRAME_COROUTINE:
        return "(coroutine)";
    case HAK_LUA_FRAME_CUT:
        return "(more)";
    case HAK_LUA_FRAME_C:
        return name[0] != '\0' ? name : "(C function)";
    default:
        break;
    }
    const char *trace = f->kind == HAK_LUA_FRAME_TRACE ? "trace in " : "";
    if (f->defined == 0) snprintf(n->function, sizeof n->function, "%smain chunk", trace);
    else if (name[0] != '\0') snprintf(n->function, sizeof n->function, "%s%s", trace, name);
    else snprintf(n->function, sizeof n->function, "%sfunction <%s:%d>", trace, file_of(f), f->defined);
    return n->function;
}

/* A stack is then a place in the runtime, which has a name. */
#ifdef NATIVE_NAMES

static bool note_native(void *user, const hak_profile_stack *stack)
{
    namer *n = user;
    for (unsigned i = 0; i < stack->depth; i++)
        if (!n->frames || !hkl_frames_at(n->frames, stack->frames[i]))
            hkc_names_add(&n->native, stack->frames[i]);
    return true;
}

static void begin_native(namer *n, const hak_ctx *ctx)
{
    hak_profile_visit(ctx, note_native, n);
    hkc_names_resolve(&n->native);
}

static void name_native(const namer *n, uintptr_t frame, hkc_frame *out)
{
    hkc_frame_of(&n->native, frame, out);
}

static void end_native(namer *n)
{
    hkc_names_close(&n->native);
}

#else

static void begin_native(namer *n, const hak_ctx *ctx)
{
    (void)n, (void)ctx;
}

static void name_native(const namer *n, uintptr_t frame, hkc_frame *out)
{
    (void)n, (void)frame;
    out->native = true;
}

static void end_native(namer *n)
{
    (void)n;
}

#endif

static void name_frame(void *user, uintptr_t frame, hkc_frame *out)
{
    namer *n = user;
    const hak_lua_frame *f = n->frames ? hkl_frames_at(n->frames, frame) : NULL;
    if (!f) {
        name_native(n, frame, out);
        return;
    }
    out->function = function_of(n, f);
    if (f->source[0] != '\0') out->file = file_of(f);
    out->line = f->line;
}

int hkl_report_json(lua_State *L, hkc_json *w)
{
    hak_ctx *ctx = hak_lua_context(L);
    if (!ctx) return ENOENT;
    const hkl_state *st = hkl_state_of(L);
    namer n = {.frames = st && st->profile ? st->profile->frames : NULL};
    const bool luajit = hkl_thread_luajit();
    hkc_parts *parts = hkc_parts_of(0, &ctx, 1);
    hkc_report_process process = {
        .runtime = luajit ? "luajit" : "lua", .version = luajit ? "2.1" : &LUA_RELEASE[4], .parts = parts};
    hkc_report_json_begin(w, &process);
    hkc_parts_close(parts);
    hkc_report_json_context(w, NULL, ctx);
    begin_native(&n, ctx);
    hkc_profile_json(w, ctx, name_frame, &n);
    end_native(&n);
    hkc_json_end(w);
    hkc_report_json_end(w);
    return 0;
}

int hak_lua_report_json(lua_State *L, FILE *out)
{
    hkc_json w;
    hkc_json_open(&w, put, out);
    if (hkl_report_json(L, &w) != 0) return -1;
    int error = hkc_json_close(&w);
    if (fputc('\n', out) == EOF) error = EIO;
    return error == 0 && fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
