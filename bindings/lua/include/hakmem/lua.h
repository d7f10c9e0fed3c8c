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
 *   A lua_State and its context belong to one thread at a time, as in Lua itself. Some modules make states in
 *   threads of their own with the lua_Alloc of the state that they run in (lua_getallocf, lua_newstate): all
 * of these have one context. It has to be shared (hak_options.shared). In a context that is not, lua_newstate
 *   gives NULL on another thread than that of the state, and a line on standard error says so, once; not
 * where the lua_Alloc is hak_lua_alloc itself. On the state's own thread lua_newstate makes a state there:
 *     - limits and labels are those of all states of the context. A limit hurries the collector of the state
 *       that came first alone. hak_lua_limit and hak_lua_labels change the lua_Alloc of that state and of L;
 *       other states go on with the one that they have
 *     - profiles and hak_lua_live_start are for the state that came first, and -1 for others. Once there was
 *       another state, only a profile by samples can be begun, and none after one by line
 *     - when the state that came first is closed before others, the context stays until the process ends; from
 *       then on hak_lua_limit with a soft limit is -1. hak_lua_drop is -1 once there was another state
 * A context that is shared:
 *     - has labels and a hard limit, for all of its states together. Nothing hurries their collectors, there
 * is no reserve, and LuaJIT keeps its own faults at the limit. hak_lua_limit with a soft limit is -1
 *     - has no profiles: hak_lua_profile_start is -1
 *     - hakmem.label concerns the thread that calls it
 *     - ends when the state that came first is closed after all others; else it stays, for the others, until
 *       the process ends. hak_lua_drop is -1 once there was another state
 *     - wants hak_ctx_fork_prepare, _parent and _child around a fork
 *   A state that is "under hakmem" is one whose allocator is hak_lua_alloc or was installed by this binding.
 *   int functions return 0; -1 when L is not under hakmem, or for the reasons given with the function.
 *   Structs that begin with their size may come from another version of this header: what one lacks is 0, and
 *   what it has beyond this version has to be 0.
 *   On LuaJIT and 5.1, which cannot tell their main thread from C, the first hak_lua_limit or
 *   hak_lua_labels of a state that was not made by hak_lua_newstate must get the main thread.
 *   On 5.5 strings that were made in a luaL_Buffer are freed by the lua_Alloc that was installed then: one
 *   that a host puts around that of the binding must stay until lua_close.
 *   Cost       hak_lua_alloc: that of hak_realloc or hak_free; with labels some 60 instructions more for each
 *              block. hak_lua_context, _profile_frame: constant. hak_lua_limit: constant, but the first one
 *              in a process opens and closes a state of its own to learn; with a soft limit allocations look at
 *              hak_ctx_stats from time to time, and with a hard one refusals look up the machine's
 *              stack: before 5.4 those of finalizers alone. hak_lua_newstate and its like: those
 *              of hak_ctx_new and lua_newstate. hak_lua_labels and _profile_start: the first one in a process
 *              runs small programs in a state of its own to learn the interpreter's code, unless that is known
 *              (hak_lua_lessons); later ones cost
 *              hak_label_define for each label, and hak_profile_start. hak_lua_report: a step for each block,
 *              as hak_labels_stats; _report_json: also hak_profile_visit, and naming each frame.
 *              hak_lua_trim: a full collection and hak_ctx_trim. hak_lua_close: lua_close, which takes some
 *              10 instructions for each block of a state of hak_lua_newstate, and hak_ctx_destroy.
 *              hak_lua_drop: hak_ctx_destroy.
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

/* In place of luaL_newstate: a state in a context and a space of its own, with a panic function and, on
 * 5.4 and 5.5, a warning function. LuaJITs that print errors of finalizers do so in states of luaL_newstate
 * alone: here a host that wants them calls jit.attach(function(message) ... end, "errfin"). lua_close frees all of it: after the last finalizer it destroys the
 * context as a whole, without a call of hak_free for each block, unless the context is shared, or has a debug option,
 * a profile or other states, or a lua_Alloc of the host's is around that of the binding. The registry has an object
 * of the binding's for that, "hakmem.end". NULL = no memory, or broken options. In the
 * options, hak_tuning.magazine_most of 0 means 8 KiB here in balanced mode. */
HAK_API lua_State *hak_lua_newstate(const hak_options *options);

/* The same in a space that is shared among many states. space NULL = one of its own. The space must
 * outlive the state. */
HAK_API lua_State *hak_lua_newstate_in(hak_space *space, const hak_options *options);

/* hak_lua_newstate_in with labels (hak_lua_labels) from the first block on. */
HAK_API lua_State *hak_lua_newstate_labelled(hak_space *space, const hak_options *options);

/* The folder in which what is learnt of a runtime is kept for later processes, by its build id, in files of 0.1 to
 * 8 KiB; NULL = none, as at first. What was learnt of the runtimes of Debian 12 and 13 is in the library, and no
 * other one has files that are read or written. Labels, profiles and limits learn by the runtime alone, once in a
 * process: 4 ms for labels, 20 ms for a profile. Neither a folder that cannot be written to nor a file that is damaged,
 * is for another build or belongs to another user is an error. The launchers and the module, where it adopts a
 * state, set $XDG_CACHE_HOME/hakmem or ~/.cache/hakmem; not in programs with more rights than their user. `folder` is
 * copied. To be called before the first state, by one thread. -1 = the name is longer than 3 KiB: there is none. */
HAK_API int hak_lua_lessons(const char *folder);

/* The lua_Alloc for lua_newstate(hak_lua_alloc, ctx). The context stays the caller's: lua_close, then
 * hak_ctx_destroy. alloc(NULL, 0) is NULL; a shrink never fails. */
HAK_API void *hak_lua_alloc(void *ctx, void *ptr, size_t osize, size_t nsize);

/* The context of L, for the functions of hakmem.h; NULL when L is not under hakmem, which is also so while an
 * allocator of the host's (lua_setallocf) wraps that of the binding. */
HAK_API hak_ctx *hak_lua_context(lua_State *L);

/* Limits on the committed bytes of the context, 0 = none. Over `hard` Lua gets its error "not enough
 * memory", which pcall catches; the state stays usable. Set it when the libraries are open: what fails
 * before is a failed luaL_openlibs. From `soft` on the collector is hurried. When soft is 0 it is 70 % of `hard`. From
 * 5.2 on Lua collects by itself when an allocation fails, too (5.2 unless its collector is stopped); LuaJIT and
 * 5.1 do not. Hurrying restarts a collector that the program had stopped; from 5.2 on only where the host gave
 * `soft`.
 * On LuaJIT and 5.1 up to 64 KiB are kept in reserve, so that the code that catches the error can allocate.
 * On LuaJIT compiled code is flushed after the error, by a hook unless the program has set one; and a full
 * collection runs by such a hook where memory is short and nothing is freed for long.
 * A limit below what is committed (hak_ctx_stats) is accepted: it only stops growth. On LuaJIT, in the main
 * thread, the error never overwrites a caller's local, whatever the limit is (docs/guide/lua.md). In LuaJIT
 * the collector's new table of strings, which is half as large as the one that it frees, may pass the hard
 * limit.
 * A plain lua_close raises `hard`, where it is refused memory for finalizers, once: to twice what it is, or what is
 * committed if that is more, and 16 MiB. On 5.2 and 5.3 the main thread's stack may pass that by 16 MiB. Quotas and
 * limits by hak_limit stay. Not in shared contexts, nor on platforms other than x86-64 Linux; docs/guide/lua.md
 * names the other cases. hak_lua_close has no limit at all.
 * -1 also when soft > hard > 0, when soft is not 0 and the context is shared or the state that came first there
 * was closed, or no memory for the bookkeeping;
 * the limits are as before then. */
HAK_API int hak_lua_limit(lua_State *L, size_t soft, size_t hard);

/* Attribution of every block to a part of the interpreter, from now on; see docs/guide/lua-labels.md. Off is
 * another lua_Alloc, with no test for labels; blocks keep the labels that they have. -1 also when there
 * is no memory for it. */
HAK_API int hak_lua_labels(lua_State *L, bool on);

/* ---- Profiles by line, function and stack ------------------------------------------------------------
 * What hakmem/profile.h says, with frames of Lua: each sampled allocation, or each one, has the stack of the
 * Lua thread that asked for it. See docs/guide/lua-profile.md. Read it by the functions of hakmem/profile.h
 * on the context (visit, stats, mark, diff, grown), with the names of its frames from here; or as a report.
 */
typedef enum hak_lua_profile_mode {
    HAK_LUA_PROFILE_SAMPLED, /* one sample each so many bytes */
    HAK_LUA_PROFILE_EXACT,   /* every allocation */
    HAK_LUA_PROFILE_LINES    /* every allocation, by line and label alone, without ages and lifetimes, at a
                                fraction of the cost of EXACT. Bytes are those that Lua asked for. It takes
                                two bytes from the operating system for each 16 bytes of addresses with
                                blocks, outside of the context and its limit. mean and seed are 0, depth is 0
                                or 1 */
} hak_lua_profile_mode;

typedef struct hak_lua_profile_options {
    size_t size; /* set by HAK_LUA_PROFILE_OPTIONS_INIT */
    hak_lua_profile_mode mode;
    size_t mean;        /* sampled: one sample each so many bytes on average; 0 = 512 KiB */
    unsigned depth;     /* most functions in Lua of a stack, at most 64; 0 = 32, or 1 where exact */
    size_t table_bytes; /* most for stacks and samples, which count as committed memory; 0 = 512 KiB, or
                           1 GiB where exact: each live block takes 60 bytes there; by line
                           256 MiB: each line and label takes 450 */
    uint64_t seed;      /* of the samples; 0 = always the same one */
} hak_lua_profile_options;
#define HAK_LUA_PROFILE_OPTIONS_INIT                                                                         \
    {                                                                                                        \
        sizeof(hak_lua_profile_options), HAK_LUA_PROFILE_SAMPLED, 0, 0, 0, 0                                 \
    }

/* From now on; options NULL = defaults. What was profiled before is forgotten. Takes at most 512 KiB from
 * malloc for the names of frames, until the state ends (lua_close, hak_lua_drop). Where the platform gives no
 * registers (all but x86-64 Linux) stacks are the call site in the runtime alone. On LuaJIT it attaches to
 * the events of the compiler, as jit.v does. -1 also for options out of range, a profile that runs already,
 * no memory, a context that is shared or has other states (see above), and HAK_LUA_PROFILE_LINES where the platform gives no registers or the
 * runtime is none that is known. */
HAK_API int hak_lua_profile_start(lua_State *L, const hak_lua_profile_options *options);

/* No more samples; what there is stays readable. -1 also when L has no profile of its own. */
HAK_API int hak_lua_profile_stop(lua_State *L);

typedef enum hak_lua_frame_kind {
    HAK_LUA_FRAME_UNKNOWN,   /* there was no room for its name */
    HAK_LUA_FRAME_LUA,       /* a function in Lua */
    HAK_LUA_FRAME_C,         /* a function in C */
    HAK_LUA_FRAME_TRACE,     /* machine code of LuaJIT: the function and the line at which it begins */
    HAK_LUA_FRAME_COROUTINE, /* the outer end of a coroutine: who resumed it is not seen */
    HAK_LUA_FRAME_CUT        /* there are more frames further out */
} hak_lua_frame_kind;

typedef struct hak_lua_frame {
    hak_lua_frame_kind kind;
    const char *source;   /* as lua_Debug.source for files, else as short_src; "" = none */
    const char *function; /* as one of its first callers calls it; "" = unknown */
    int line;             /* 0 = unknown */
    int defined;          /* where the function begins; 0 = a main chunk */
} hak_lua_frame;

/* What a number of hak_profile_stack.frames stands for, also when the function is gone. The texts stay until
 * the state ends. -1 also when it is no frame of Lua, but an address of code. */
HAK_API int hak_lua_profile_frame(lua_State *L, uintptr_t number, hak_lua_frame *out);

/* The report of the state's context with its profile as JSON, one line (schema "hakmem-report/1",
 * docs/internals/report-format.md). Allocates nothing in the context. -1 also when writing fails. */
HAK_API int hak_lua_report_json(lua_State *L, FILE *out);

/* From now on `hakmem attach PID` shows the state while it runs: a thread serves a socket of the owner's,
 * "on" = the place where the command looks, else a path with a slash, in which %p is the process. The state's
 * own thread writes the report, the next time that it asks for memory or frees some; a state that does neither
 * for 2 seconds does not answer (one in a shared context always does), nor does one whose allocator the host
 * has wrapped, nor a forked child. One state in a process, once. 0 = ok; -1 = error says why, in a line. Cost:
 * none until somebody looks. On platforms other than x86-64 Linux it is to be stopped before a host wraps the
 * allocator (lua_setallocf). */
HAK_API int hak_lua_live_start(lua_State *L, const char *place, char *error, size_t error_size);
/* To be called before the state is closed, on its thread, whatever allocator it has. No effect if the state
 * was not shown. In a forked child, the parent's state goes on to be shown. */
HAK_API void hak_lua_live_stop(lua_State *L);

/* A full collection, then hak_ctx_trim. Returns the bytes given back to the operating system. Raises
 * the errors of __gc metamethods where lua_gc does (not on 5.4). 0 also when L is not under hakmem. */
HAK_API size_t hak_lua_trim(lua_State *L);

/* Labels with their live bytes, blocks and share; then the committed bytes by use, and what of the resident
 * bytes of the process is not in the context. At most 100 columns. -1 also when writing fails. */
HAK_API int hak_lua_report(lua_State *L, FILE *out);

/* lua_close without limits, so that no finalizer fails for want of memory. States made by
 * hak_lua_newstate take their context with them. -1 = nothing was closed, L is as before: it is not under
 * hakmem, or an allocator of the host's wraps the binding's. Such a host either puts back by lua_setallocf
 * what lua_getallocf gave when it wrapped it, and calls this again; or it calls
 * hak_limit(ctx, 0, 0, NULL, NULL) with the hak_lua_context of that time, and lua_close(L), to whose end the
 * wrapper has to pass on every call. */
HAK_API int hak_lua_close(lua_State *L);

/* Ends a state without closing it: its machine code is flushed (LuaJIT), and its context is destroyed
 * with all that is in it, the caller's context included where it was made by lua_newstate(hak_lua_alloc).
 * It gives back pages and visits no object. Only for a state
 *   - that is not running: not from a function, hook or finalizer of that state or of its coroutines;
 *   - whose userdata and cdata own nothing outside Lua's heap: no __gc and no ffi.gc finalizer runs, so
 *     open files are neither flushed nor closed, and what C modules took from malloc leaks;
 *   - to which no other thread, timer or FFI callback can come back. LuaJIT keeps a page of 4 KiB for a
 *     state that ever made FFI callbacks;
 *   - and not for one adopted by `require "hakmem"`, whose older blocks are not in the context (-1).
 * C modules stay loaded (no dlclose). L is invalid afterwards. */
HAK_API int hak_lua_drop(lua_State *L);

/* The module `hakmem.adopt`: a function that takes a table with `limit`, `shared` or both, and gives the
 * module `hakmem`. For a state whose allocator is not the runtime's own, which `hakmem` by itself does not
 * adopt: the limit that the host may have set on it ends with the adoption. */
HAK_API int luaopen_hakmem_adopt(lua_State *L);

/* The module `hakmem`: luaL_requiref(L, "hakmem", luaopen_hakmem, 0) or package.preload. A state that is
 * not under hakmem yet is adopted. */
HAK_API int luaopen_hakmem(lua_State *L);

#ifdef __cplusplus
}
#endif
#endif
