/* --hak-learn: what the context of the program learns, and the file that the next start begins with. */
#include "launcher.h"

#include "common/file.h"
#include "common/learn.h"

#include <lauxlib.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static hkc_learning learning;
static char learned_file[HKC_FILE_NAME];

bool hkl_learn_wanted(const hkl_options *o)
{
    return o->learn_file || o->mode == HAK_MODE_LEARNING || o->mode == HAK_MODE_RESEARCH;
}

bool hkl_learn_plan(hkl_options *o, char *message, size_t size)
{
    char why[400];
    if (o->learn_file && !o->policy && !hkc_learn_load(o->learn_file, &o->policy, why, sizeof why)) {
        snprintf(message, size, "--hak-learn: %s", why);
        return false;
    }
    if (o->learn_file) {
        /* The program may change its directory before the file is written. */
        const int error = hkc_file_absolute(o->learn_file, learned_file);
        if (error) {
            snprintf(message, size, "--hak-learn: %.300s: %s", o->learn_file, strerror(error));
            return false;
        }
    }
    o->policy = hkc_memory_begin(o->policy, &o->memory, hkl_learn_wanted(o), o->mode_named);
    return true;
}

/* The finalizer of an object that nothing refers to runs once in each cycle of the collector, and makes the
 * next object. So the learner sees a program that never calls hakmem.tick(). */
static int cycle(lua_State *L);

static void make_cycle(lua_State *L)
{
    luaL_checkstack(L, 2, "no memory to learn");
    lua_newuserdata(L, 1);
    if (luaL_newmetatable(L, "hakmem.cycle")) {
        lua_pushcfunction(L, cycle);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

static int cycle(lua_State *L)
{
    if (!learning.learner) return 0;
    hak_learner_look(learning.ctx, 0);
    make_cycle(L);
    return 0;
}

static int begin_cycles(lua_State *L)
{
    make_cycle(L);
    return 0;
}

bool hkl_learn_start(const hkl_options *o, lua_State *L, hak_ctx *ctx)
{
    if (!hkc_learn_start(&learning, ctx, &o->memory, o->mode == HAK_MODE_RESEARCH)) return false;
    lua_pushcfunction(L, begin_cycles);
    const int status = lua_pcall(L, 0, 0, 0);
    if (status != LUA_OK) lua_pop(L, 1);
    return status == LUA_OK;
}

bool hkl_learn_finish(const hkl_options *o)
{
    const char *file = o->learn_file ? learned_file : NULL;
    const int error = hkc_learn_finish(&learning, file, o->mode == HAK_MODE_RESEARCH ? STDERR_FILENO : -1);
    char line[HKC_FILE_NAME + 128];
    if (error == 0) return true;
    snprintf(line, sizeof line, "cannot write what was learned%s%s: %s", file ? ": " : "", file ? file : "",
             strerror(error));
    hkl_message(line);
    return false;
}
