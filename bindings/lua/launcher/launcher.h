/* What the parts of hakluajit and of haklua5.1 to 5.5 share. PROGRAM and HKL_LUAJIT come from the
 * build. */
#ifndef HKL_LAUNCHER_H
#define HKL_LAUNCHER_H

#include "common/file.h"
#include "common/memory.h"

#include <hakmem/lua.h>
#include <hakmem/policy.h>

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifndef LUA_OK
#define LUA_OK 0 /* 5.1 */
#endif

#if LUA_VERSION_NUM == 501 && !defined(HKL_LUAJIT)
#define HKL_PUC_51 1
#else
#define HKL_PUC_51 0
#endif
/* The arguments of the script are those of the command line, whatever becomes of the table. */
#define HKL_PLAIN_ARGUMENTS (HKL_PUC_51 || LUA_VERSION_NUM == 502)

/* Something to do before the script, in the order of the command line. */
typedef struct hkl_action {
    char option; /* e l j O W */
    const char *text;
} hkl_action;

typedef struct hkl_options {
    char **argv; /* without the --hak- options; NULL at the end */
    int argc;
    int script;         /* index in argv; argc = none */
    int bytecode;       /* index of -b; 0 = none */
    const char *broken; /* an option that the interpreter does not take: only this is to be said */
    hkl_action *actions;
    int action_count;
    bool interactive, version, ignore_env, has_chunk, from_stdin;
    bool report, labels;
    bool shared;             /* the context is that of all threads */
    const char *report_file; /* NULL = stderr */
    char *profile_file;      /* NULL = no profile */
    hak_lua_profile_mode profile_mode;
    bool probes;                /* a profile for tracers, be there a file or not */
    size_t probes_mean;         /* bytes to a sample of it; 0 = the default */
    const char *live;           /* where the socket is; NULL = none */
    size_t profile_mean;        /* bytes to a sample; 0 = the default */
    uint64_t profile_window_ns; /* 0 = no windows by the clock */
    bool has_profile_window;    /* was given */
    const char *limit_text;     /* the option as given */
    size_t limit;               /* 0 = none */
    size_t reserve;             /* hak_space_options.reserve; 0 = none */
    hak_mode mode;
    bool mode_named;        /* the user named one, which does not just learn */
    hak_policy *policy;     /* NULL = none */
    const char *learn_file; /* NULL = none */
    hkc_memory memory;      /* what it is worth */
} hkl_options;

/* false: a --hak- option is wrong, one line about it is in `message`. The arrays of a successful call last as
 * long as the process. */
bool hkl_options_parse(hkl_options *options, int argc, char **argv, char *message, size_t message_size);
/* What is wrong with options->broken, and how the program is called; on stderr. */
void hkl_print_usage(const hkl_options *options);

/* What messages begin with: argv[0], or PROGRAM where that is empty; NULL in interactive mode. */
extern const char *hkl_program;
/* One line on stderr. */
void hkl_message(const char *text);

/* --hak-learn begins with what the file says, if it is there, and --hak-memory and --hak-price have their
 * say. false = `message` says what is wrong. */
bool hkl_learn_plan(hkl_options *options, char *message, size_t size);
/* Whether the program learns. */
bool hkl_learn_wanted(const hkl_options *options);
/* The context of the state is learned from: the learner looks at it when the program calls hakmem.tick(), and
 * with each cycle of the collector. false = no memory. May raise an error of Lua where that has none. */
bool hkl_learn_start(const hkl_options *options, lua_State *L, hak_ctx *ctx);
/* Writes what was learned, if anything is. false = it could not be written, and that was said. */
bool hkl_learn_finish(const hkl_options *options);

/* Where a report goes: a file that appears when it is whole, or a stream. */
typedef struct hkl_output {
    FILE *special;              /* stderr; or what is written in place */
    char target[HKC_FILE_NAME]; /* absolute, for the program may change directories; "" = special */
    pid_t owner;                /* the process that planned it */
    hkc_file file;
} hkl_output;

/* name NULL = stderr; %p in it is the number of the process. false = errno says why it cannot be written
 * there. */
bool hkl_output_plan(hkl_output *output, const char *name);
/* Whether this process has a report of its own to write: a forked child has one only if the name has its
 * number. */
bool hkl_output_due(const hkl_output *output);
/* The stream to write to; NULL = failed, errno says why. */
FILE *hkl_output_open(hkl_output *output);
/* error: why the report is not whole; 0 = it is. The report is there when this gives 0, else an error; then
 * what was there before stays. */
int hkl_output_close(hkl_output *output, FILE *out, int error);

/* Looks which release of the runtime is loaded, once its libraries are open. */
void hkl_version_learn(lua_State *L);
/* The line of -v. */
void hkl_print_version(void);
#if LUA_VERSION_NUM == 501
#define hkl_from_release(version, release) false
#else
/* The interpreter of that release, or of a later one, is what the launcher stands for. */
bool hkl_from_release(int version, int release);
#endif

/* Runs what is at the top of the stack, under `arguments` arguments, with a traceback; prints the error.
 * Ctrl-C stops it. */
int hkl_run(lua_State *L, int arguments, int results);
/* Prints the error at the top of the stack, if status is one, and pops it. Returns status. On 5.2 it also
 * collects, as the interpreter does, and raises the error of a finalizer that fails. */
int hkl_print_error(lua_State *L, int status);
/* Prints and pops in the same way, and raises nothing: for where no call is protected. */
void hkl_print_last_error(lua_State *L, int status);

/* Everything from LUA_INIT to the end of the script or of the input. false = failed, and said so. Raises
 * errors as well. */
bool hkl_run_program(lua_State *L, const hkl_options *options);

/* Reads and runs lines until the end of the input. */
void hkl_repl(lua_State *L);

#ifdef HKL_LUAJIT
/* -j name[=option,...], -O[option,...] and -b; false = failed, and said so. */
bool hkl_jit_command(lua_State *L, const char *command);
bool hkl_jit_optimize(lua_State *L, const char *options);
bool hkl_jit_bytecode(lua_State *L, const hkl_options *options);
void hkl_jit_print_status(lua_State *L);
/* Errors of finalizers are printed as in states of luaL_newstate, if those print them. */
void hkl_jit_print_finalizer_errors(lua_State *L);
#endif

#endif
