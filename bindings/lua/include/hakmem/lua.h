/* hakmem for Lua: LuaJIT 2.1 (GC64) and PUC Lua 5.1 to 5.5.
 *
 *       lua_State *L = hak_lua_newstate(NULL);         // instead of luaL_newstate()
 *       luaL_openlibs(L);
 *       hak_lua_limit(L, 0, 64 << 20);
 *       ...
 *       hak_lua_report(L, stderr);
 *       lua_close(L);                                  // the heap goes with its last block
 *
 * STABILITY  Stable.
 *
 * CONVENTIONS
 *   One binding library per runtime (hakmem_lua_luajit, hakmem_lua_51 to _55), one header. Include
 *   the lua.h of that runtime before, or have it on the include path.
 *   A lua_State and its context belong to one thread at a time, as in Lua itself. Some modules take the
 *   lua_Alloc of the state that they run in (lua_getallocf) and make states in threads of their own with it
 *   (lua_newstate): all of these states have one context, which has to be shared (hak_options.shared). In a
 *   context that is not shared, lua_newstate gives NULL on any thread but that of the state, and one line on
 *   standard error says so once, except where the lua_Alloc is hak_lua_alloc itself. On the state's own
 *   thread lua_newstate makes another state in the context:
 *     - limits and labels are those of all states of the context. A limit hurries only the collector of the
 *       first state. hak_lua_limit and hak_lua_labels change the lua_Alloc of the first state and of L; other
 *       states keep the lua_Alloc that they have
 *     - profiles and hak_lua_live_start are for the first state, and -1 for others. Once there was another
 *       state, only a sampled profile can begin, and no profile after one by line
 *     - when the first state is closed before others, the context stays until the process ends; from then on
 *       hak_lua_limit with a soft limit is -1. hak_lua_drop is -1 once there was another state
 *   A context that is shared:
 *     - has labels and a hard limit, for all of its states together. Nothing hurries their collectors, there
 *       is no reserve, and LuaJIT keeps its own faults at the limit. hak_lua_limit with a soft limit is -1
 *     - has no profiles: hak_lua_profile_start is -1
 *     - hakmem.label concerns the thread that calls it
 *     - ends when the first state is closed after all others; otherwise it stays, for the others, until the
 *       process ends. hak_lua_drop is -1 once there was another state
 *     - needs hak_ctx_fork_prepare, _parent and _child around a fork
 *   A state that is "under hakmem" is one whose allocator is hak_lua_alloc or was installed by this binding.
 *   Functions that return int return 0, or -1 when L is not under hakmem and for the reasons given with each
 *   function. Structs that begin with their size may come from another version of this header: fields that
 *   such a struct lacks are 0, and bytes beyond this version must be 0.
 *   On LuaJIT and 5.1, which cannot tell their main thread from C, the first hak_lua_limit or hak_lua_labels
 *   of a state that was not made by hak_lua_newstate must get the main thread.
 *   On 5.5 a string from a luaL_Buffer is freed by the lua_Alloc that was installed when the string
 *   was made. So a lua_Alloc that a host puts around that of the binding must stay until lua_close.
 *   Cost       hak_lua_alloc: that of hak_realloc or hak_free; with labels some 60 instructions more for each
 *              block. hak_lua_context, _profile_frame: constant. hak_lua_limit: constant, but the first call
 *              in a process opens and closes a state of its own to learn; with a soft limit allocations look
 *              at hak_ctx_stats from time to time, and with a hard limit refusals look up the machine's stack
 *              (before 5.4 only refusals in finalizers). hak_lua_newstate and its like: those of hak_ctx_new
 *              and lua_newstate. hak_lua_labels and _profile_start: the first call in a process runs small
 *              programs in a state of its own to learn the interpreter's code, unless that is known
 *              (hak_lua_lessons); later calls cost hak_label_define for each label, and hak_profile_start.
 *              hak_lua_report: a step for each block, as hak_labels_stats; _report_json: also
 *              hak_profile_visit, and naming each frame. hak_lua_trim: a full collection and hak_ctx_trim.
 *              hak_lua_close: lua_close, which takes some 10 instructions for each block of a state of
 *              hak_lua_newstate, and hak_ctx_destroy. hak_lua_drop: hak_ctx_destroy.
 *   Since      0.1 for everything in this file.
 */
#ifndef HAKMEM_LUA_H
#define HAKMEM_LUA_H

#include <hakmem/hakmem.h>

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <lua.h>

/* Makes a state, as luaL_newstate does, in a context and a space of its own, with a panic function and, on
 * 5.4 and 5.5, a warning function. LuaJITs that print errors of finalizers do so only in states of
 * luaL_newstate: here a host that wants these messages calls jit.attach(function(message) ... end, "errfin").
 * lua_close frees everything: after the last finalizer it destroys the context as a whole, without a call of
 * hak_free for each block. It frees block by block if the context is shared, or has a debug option, a profile
 * or other states, or if a lua_Alloc of the host's is around that of the binding. For that end the registry
 * has an object of the binding, "hakmem.end". NULL = no memory, or broken options. In the options,
 * hak_tuning.magazine_most of 0 means 8 KiB here in balanced mode. */
HAK_API lua_State *hak_lua_newstate(const hak_options *options);

/* Does the same in a space that many states share. space NULL = a space of its own. The space must outlive
 * the state. */
HAK_API lua_State *hak_lua_newstate_in(hak_space *space, const hak_options *options);

/* Does what hak_lua_newstate_in does, with labels (hak_lua_labels) from the first block on. */
HAK_API lua_State *hak_lua_newstate_labelled(hak_space *space, const hak_options *options);

/* Sets the folder in which lessons about a runtime are kept for later processes, by its build id, in files of
 * 0.1 to 8 KiB; NULL = none, as at first. For the runtimes of Debian 12 and 13 the library has the lessons
 * itself, and reads and writes no file. Without a file, labels, profiles and limits learn from the runtime,
 * once in a process: 4 ms for labels, 20 ms for a profile. It is no error if the folder cannot be written to,
 * or if a file is damaged, is for another build or belongs to another user. The launchers, and the module
 * where it adopts a state, set $XDG_CACHE_HOME/hakmem or ~/.cache/hakmem, except in programs with more rights
 * than their user. `folder` is copied. One thread calls this before the first state. -1 = the name is longer
 * than 3 KiB: there is no folder. */
HAK_API int hak_lua_lessons(const char *folder);

/* Is the lua_Alloc for lua_newstate(hak_lua_alloc, ctx). The context stays the caller's, who calls lua_close,
 * then hak_ctx_destroy. alloc(NULL, 0) is NULL; a shrink never fails. */
HAK_API void *hak_lua_alloc(void *ctx, void *ptr, size_t osize, size_t nsize);

/* Returns the context of L, for the functions of hakmem.h; NULL when L is not under hakmem, and while an
 * allocator of the host (lua_setallocf) wraps that of the binding. */
HAK_API hak_ctx *hak_lua_context(lua_State *L);

/* Limits the committed bytes of the context; 0 = no limit. Over `hard` Lua gets its error "not enough
 * memory", which pcall catches; the state stays usable. Set the limit when the libraries are open, or
 * luaL_openlibs may fail. From `soft` on the binding hurries the collector; soft 0 means 70 % of `hard`. From
 * 5.2 on Lua also collects by itself when an allocation fails (5.2 unless its collector is stopped); LuaJIT
 * and 5.1 do not. Hurrying restarts a collector that the program had stopped; from 5.2 on only if the host
 * gave `soft`. On LuaJIT and 5.1 up to 64 KiB are kept in reserve, so that the code that catches the error
 * can allocate. On LuaJIT a hook flushes compiled code after the error, unless the program has set a hook;
 * such a hook also runs a full collection where memory is short and nothing is freed for long, and, on
 * LuaJITs that end the process otherwise, finalizers that compiled code would run as it is left. A limit
 * below what is committed (hak_ctx_stats) is accepted: it only stops growth. On LuaJIT, in the main thread,
 * the error never overwrites a caller's local, whatever the limit is (docs/guide/lua.md). In LuaJIT one
 * allocation may pass the hard limit: the collector's new table of strings, half as large as the table that
 * it frees. If a plain lua_close is refused memory for finalizers, it raises `hard` once: to twice its value
 * (or twice what is committed, if that is more) plus 16 MiB. On 5.2 and 5.3 the main thread's stack may pass
 * that by 16 MiB. Quotas and limits by hak_limit stay. lua_close does not raise the limit in shared contexts,
 * nor on platforms other than Linux on x86-64 and aarch64; docs/guide/lua.md names the other cases.
 * hak_lua_close has no limit at all. -1 also when soft > hard > 0, when soft is not 0 and the context is
 * shared or its first state was closed, or when there is no memory for the bookkeeping; the limits are then
 * as before. */
HAK_API int hak_lua_limit(lua_State *L, size_t soft, size_t hard);

/* Labels every block from now on with the part of the interpreter that asked for it; see
 * docs/guide/lua-labels.md. Off installs another lua_Alloc, with no test for labels; blocks keep the labels
 * that they have. -1 also when there is no memory for labels. */
HAK_API int hak_lua_labels(lua_State *L, bool on);

/* ---- Profiles by line, function and stack ------------------------------------------------------------
 * Profiles as in hakmem/profile.h, with frames of Lua: each sampled allocation, or every allocation, has the
 * stack of the Lua thread that asked for it. See docs/guide/lua-profile.md. Read a profile by the functions
 * of hakmem/profile.h on the context (visit, stats, mark, diff, grown), with the names of frames from here;
 * or as a report. */
typedef enum hak_lua_profile_mode {
    HAK_LUA_PROFILE_SAMPLED, /* one sample each so many bytes */
    HAK_LUA_PROFILE_EXACT,   /* every allocation */
    HAK_LUA_PROFILE_LINES    /* every allocation, by line and label alone, without ages and lifetimes, at a
                                fraction of the cost of EXACT. Bytes are those that Lua asked for. The mode
                                takes two bytes from the operating system for each 16 bytes of addresses with
                                blocks, outside of the context and its limit. mean and seed are 0, depth is 0
                                or 1 */
} hak_lua_profile_mode;

typedef struct hak_lua_profile_options {
    size_t size; /* set by HAK_LUA_PROFILE_OPTIONS_INIT */
    hak_lua_profile_mode mode;
    size_t mean;        /* sampled: one sample each so many bytes on average; 0 = 512 KiB */
    unsigned depth;     /* most functions in Lua of a stack, at most 64; 0 = 32, or 1 where exact */
    size_t table_bytes; /* most for stacks and samples, which lie apart from the context: no limit counts
                           them. 0 = 16 MiB, or 1 GiB where exact: each live block takes 60 bytes there; by
                           line 256 MiB: each line and label takes 120.
                           In a context with a hard limit, 0 is at most the limit at the start of the profile,
                           or 1 MiB if that is more */
    uint64_t seed;      /* of the samples; 0 = always the same one */
    uint64_t
        window_ns; /* as hak_profile_options.window_ns; by line the clock is looked at each 64 KiB that the
                      state takes. 0 = no window begins by itself */
} hak_lua_profile_options;
#define HAK_LUA_PROFILE_OPTIONS_INIT                                                                         \
    {                                                                                                        \
        sizeof(hak_lua_profile_options), HAK_LUA_PROFILE_SAMPLED, 0, 0, 0, 0, 0                              \
    }

/* Begins a profile and forgets an earlier one; options NULL = defaults. Takes at most 16 MiB from malloc for
 * the names of frames, some 60 bytes for each, until the state ends (lua_close, hak_lua_drop); in a context
 * with a hard limit at most a quarter of the limit, or 512 KiB if that is more. Where the platform gives no
 * registers (all but Linux on x86-64 and aarch64) a stack is only the call site in the runtime. What LuaJIT's
 * machine code allocates has its line from the snapshots of the trace, and the functions that are inlined
 * there are frames. -1 also for options out of range, a profile that runs already, no memory, a context that
 * is shared or has other states (see above), and HAK_LUA_PROFILE_LINES where the platform gives no registers
 * or the runtime is unknown. */
HAK_API int hak_lua_profile_start(lua_State *L, const hak_lua_profile_options *options);

/* Takes no more samples; what there is stays readable. -1 also when L has no profile of its own. */
HAK_API int hak_lua_profile_stop(lua_State *L);

typedef enum hak_lua_frame_kind {
    HAK_LUA_FRAME_UNKNOWN, /* there was no room for its name */
    HAK_LUA_FRAME_LUA,     /* a function in Lua */
    HAK_LUA_FRAME_C,       /* a function in C */
    HAK_LUA_FRAME_TRACE,   /* machine code of LuaJIT of which the line is not known: where the trace begins */
    HAK_LUA_FRAME_COROUTINE, /* the outer end of a coroutine: the profile does not see who resumed it */
    HAK_LUA_FRAME_CUT        /* there are more frames further out */
} hak_lua_frame_kind;

typedef struct hak_lua_frame {
    hak_lua_frame_kind kind;
    const char *source;   /* as lua_Debug.source for files, else as short_src; "" = none */
    const char *function; /* as one of its first callers calls it; "" = unknown */
    int line;             /* 0 = unknown */
    int defined;          /* where the function begins; 0 = a main chunk */
} hak_lua_frame;

/* Tells what a number of hak_profile_stack.frames stands for, even when the function is gone. The texts stay
 * until the state ends. -1 also when the number is no frame of Lua, but an address of code. */
HAK_API int hak_lua_profile_frame(lua_State *L, uintptr_t number, hak_lua_frame *out);

/* Writes the report of the state's context with its profile as JSON, one line (schema "hakmem-report/1",
 * docs/internals/report-format.md). Allocates nothing in the context. -1 also when writing fails. */
HAK_API int hak_lua_report_json(lua_State *L, FILE *out);

/* Lets `hakmem attach PID` show the state while it runs: a thread serves a socket that belongs to the user.
 * place: "on" = where the command looks, else a path with a slash, in which %p is the process. The state's
 * own thread writes the report, the next time that it asks for memory or frees some. A state that does
 * neither for 2 seconds does not answer (a state in a shared context always does), nor does a state whose
 * allocator the host has wrapped, nor a forked child. Works for one state in a process, once. Returns 0, or
 * -1, and error says why, in a line. Cost: none until somebody looks. Always -1 on macOS and Windows. On platforms
 * other than Linux on x86-64 and aarch64, stop this before a host wraps the allocator (lua_setallocf). */
HAK_API int hak_lua_live_start(lua_State *L, const char *place, char *error, size_t error_size);
/* Ends that. Call this before the state is closed, on its thread, whatever allocator it has. No effect if the
 * state was not shown. In a forked child, the parent's state is still shown. */
HAK_API void hak_lua_live_stop(lua_State *L);

/* Runs a full collection, then hak_ctx_trim. Returns the bytes given back to the operating system. Raises the
 * errors of __gc metamethods where lua_gc does (not on 5.4). 0 also when L is not under hakmem. */
HAK_API size_t hak_lua_trim(lua_State *L);

/* Prints the labels with their live bytes, blocks and share; then the committed bytes by use, and the
 * resident bytes of the process that are not in the context. At most 100 columns. -1 also when writing
 * fails. */
HAK_API int hak_lua_report(lua_State *L, FILE *out);

/* Does what lua_close does, without limits, so that no finalizer fails for want of memory. States made by
 * hak_lua_newstate take their context with them. -1 = nothing was closed and L is as before: it is not under
 * hakmem, or an allocator of the host wraps that of the binding. Such a host either puts the lua_Alloc that
 * it wrapped back by lua_setallocf, and calls this again; or it keeps the hak_lua_context from before it
 * wrapped, calls hak_limit(ctx, 0, 0, NULL, NULL) and lua_close(L), and its wrapper passes on every call
 * until lua_close ends. */
HAK_API int hak_lua_close(lua_State *L);

/* Ends a state without closing it: flushes its machine code (LuaJIT), and destroys its context with all that
 * is in it, even if the caller made the context for lua_newstate(hak_lua_alloc). Gives back pages and visits
 * no object. Only for a state
 *   - that is not running: not from a function, hook or finalizer of that state or of its coroutines;
 *   - whose userdata and cdata own nothing outside Lua's heap: no __gc and no ffi.gc finalizer runs, so
 *     open files are neither flushed nor closed, and what C modules took from malloc leaks;
 *   - to which no other thread, timer or FFI callback can come back. LuaJIT keeps a page of 4 KiB for a
 *     state that ever made FFI callbacks;
 *   - and not for one adopted by `require "hakmem"`, whose older blocks are not in the context (-1).
 * C modules stay loaded (no dlclose). L is invalid afterwards. */
HAK_API int hak_lua_drop(lua_State *L);

/* Opens the module `hakmem.adopt`: a function that takes a table with `limit`, `shared` or both, and returns
 * the module `hakmem`. For a state whose allocator is not the runtime's own, which `hakmem` by itself does
 * not adopt. A limit that the host set on that allocator ends with the adoption. */
HAK_API int luaopen_hakmem_adopt(lua_State *L);

/* Opens the module `hakmem`: luaL_requiref(L, "hakmem", luaopen_hakmem, 0) or package.preload. Adopts a state
 * that is not under hakmem yet. */
HAK_API int luaopen_hakmem(lua_State *L);

#ifdef __cplusplus
}
#endif
#endif
