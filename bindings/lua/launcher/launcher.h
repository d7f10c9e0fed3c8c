/* What the parts of hakluajit and haklua5.4 share. PROGRAM and HK_LUA_LUAJIT come from the build. */
#ifndef HK_LAUNCHER_H
#define HK_LAUNCHER_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

/* Something to do before the script, in the order of the command line. */
typedef struct hk_action {
    char option; /* e l j O W */
    const char *text;
} hk_action;

typedef struct hk_options {
    char **argv; /* without the --hak- options; NULL at the end */
    int argc;
    int script;   /* index in argv; argc = none */
    int bytecode; /* index of -b; 0 = none */
    hk_action *actions;
    int action_count;
    bool interactive, version, ignore_env, has_chunk, from_stdin;
    bool report, labels;
    const char *report_file; /* NULL = stderr */
    size_t limit;            /* 0 = none */
} hk_options;

/* false: one line is in `message`. The arrays of a successful call last as long as the process. */
bool hk_options_parse(hk_options *options, int argc, char **argv, char *message, size_t message_size);

/* Runs what is at the top of the stack, under `arguments` arguments, with a traceback; prints the error.
 * Ctrl-C stops it. */
int hk_run(lua_State *L, int arguments, int results);
/* Prints the error at the top of the stack, if status is one, and pops it. Returns status. */
int hk_print_error(lua_State *L, int status);

/* Everything from LUA_INIT to the end of the script or of the input. false = failed, and said so. */
bool hk_run_program(lua_State *L, const hk_options *options);

/* Reads and runs lines until the end of the input. */
void hk_repl(lua_State *L);

#endif
