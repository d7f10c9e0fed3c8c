/* What a Lua state costs as a whole: to create, to keep, to clean up, to end. Each call of this program
 * does one measurement in a fresh process and prints one line of JSON; states.py runs them all.
 *
 *   states fresh ALLOCATOR COUNT          states with the libraries open, all alive
 *   states small ALLOCATOR COUNT          the same, each with 87 KiB in use by Lua's own count
 *   states survivors ALLOCATOR COUNT      COUNT records, all but each 1000th dropped
 *   states teardown ALLOCATOR COUNT       COUNT records, then the end of the state
 *
 * ALLOCATOR: builtin; hak-shared (states in one space); hak-own (a space each); for teardown also
 * hak-drop and hak-drop-huge (hak_lua_drop, the latter with huge pages from the start). */
#include <hakmem/lua.h>
#include <hakmem/tuning.h>

#include <lauxlib.h>
#include <lualib.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what)
{
    fprintf(stderr, "states: %s\n", what);
    exit(1);
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Resident KiB, counted by the kernel page by page; the counters of /proc/self/status lag behind. */
static double resident_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Rss: %ld", &kb) == 1) break;
    if (f) fclose(f);
    if (kb < 0) fail("no Rss in /proc/self/smaps_rollup");
    return (double)kb;
}

typedef struct maker {
    const char *name;
    bool hak, shared, drop, huge;
} maker;

static const maker makers[] = {
    {"builtin", false, false, false, false},   {"hak-shared", true, true, false, false},
    {"hak-own", true, false, false, false},    {"hak-drop", true, false, true, false},
    {"hak-drop-huge", true, true, true, true},
};

static hak_space *shared_space;

static void prepare(const maker *m)
{
    if (!m->shared) return;
    hak_space_options options = HAK_SPACE_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    if (m->huge) tuning.huge_from = 1;
    options.tuning = &tuning;
    shared_space = hak_space_new(&options);
    if (!shared_space) fail("no space");
}

static lua_State *state_new(const maker *m)
{
    lua_State *L = m->hak ? hak_lua_newstate_in(shared_space, NULL) : luaL_newstate();
    if (!L) fail("no state");
    return L;
}

static void run(lua_State *L, const char *code, long argument)
{
    if (luaL_loadstring(L, code) != 0) fail(lua_tostring(L, -1));
    lua_pushinteger(L, argument);
    if (lua_pcall(L, 1, 0, 0) != 0) fail(lua_tostring(L, -1));
}

static double used_kb(lua_State *L)
{
    return (double)lua_gc(L, LUA_GCCOUNT, 0) + (double)lua_gc(L, LUA_GCCOUNTB, 0) / 1024;
}

/* Small records until Lua counts 87 KiB of live objects. */
static const char fill_small[] =
    "kept = {}\n"
    "collectgarbage() collectgarbage()\n"
    "while collectgarbage('count') < 87 do\n"
    "    for _ = 1, 4 do\n"
    "        kept[#kept + 1] = { id = #kept, name = 'entry ' .. #kept, size = { #kept, 2 } }\n"
    "    end\n"
    "    collectgarbage()\n"
    "end\n";

static void many(const maker *m, bool small, long count)
{
    lua_State **all = malloc((size_t)count * sizeof *all);
    if (!all) fail("no memory");
    memset(all, 0xff, (size_t)count * sizeof *all);
    prepare(m);
    /* The first state pays for what the process needs once: pages of the library, relocations. */
    lua_State *first = state_new(m);
    luaL_openlibs(first);
    if (small) run(first, fill_small, 0);
    lua_close(first);
    double before = resident_kb(), start = cpu_ms(), created = 0, used = 0;
    for (long i = 0; i < count; i++) {
        all[i] = state_new(m);
        luaL_openlibs(all[i]);
    }
    created = cpu_ms() - start;
    for (long i = 0; small && i < count; i++)
        run(all[i], fill_small, 0);
    double resident = resident_kb() - before;
    for (long i = 0; i < count; i++)
        used += used_kb(all[i]);
    start = cpu_ms();
    for (long i = 0; i < count; i++)
        lua_close(all[i]);
    double closed = cpu_ms() - start;
    hak_space_delete(shared_space);
    printf("{\"create_us\": %.2f, \"close_us\": %.2f, \"resident_kb\": %.2f, \"lua_kb\": %.2f}\n",
           created * 1e3 / (double)count, closed * 1e3 / (double)count, resident / (double)count,
           used / (double)count);
    free(all);
}

static const char fill_records[] = "records = {}\n"
                                   "for i = 1, ... do\n"
                                   "    records[i] = { id = i, name = 'record ' .. i, at = { i, -i } }\n"
                                   "end\n";

static const char drop_most[] = "for i = 1, ... do\n"
                                "    if i % 1000 ~= 0 then records[i] = false end\n"
                                "end\n";

static const char check_survivors[] = "for i = 1000, ..., 1000 do\n"
                                      "    local r = records[i]\n"
                                      "    assert(r.id == i and r.name == 'record ' .. i and r.at[2] == -i)\n"
                                      "end\n";

/* A state with that many records, and the time that these took. */
static lua_State *with_records(const maker *m, long count, double *built)
{
    lua_State *L = state_new(m);
    luaL_openlibs(L);
    double start = cpu_ms();
    run(L, fill_records, count);
    *built = cpu_ms() - start;
    return L;
}

static void survivors(const maker *m, long count)
{
    prepare(m);
    double built, before = resident_kb();
    lua_State *L = with_records(m, count, &built);
    double full = resident_kb() - before;
    run(L, drop_most, count);
    double start = cpu_ms();
    lua_gc(L, LUA_GCCOLLECT, 0);
    double collected = cpu_ms() - start, after = resident_kb() - before;
    start = cpu_ms();
    if (m->hak) hak_ctx_trim(hak_lua_context(L));
    else malloc_trim(0); /* all there is: it helps where the allocator is the C library's */
    double trimmed = cpu_ms() - start, left = resident_kb() - before;
    run(L, check_survivors, count);
    printf("{\"build_ms\": %.1f, \"full_kb\": %.0f, \"collect_ms\": %.1f, \"collected_kb\": %.0f, "
           "\"trim_ms\": %.1f, \"trimmed_kb\": %.0f, \"lua_kb\": %.0f}\n",
           built, full, collected, after, trimmed, left, used_kb(L));
    lua_close(L);
    hak_space_delete(shared_space);
}

static void teardown(const maker *m, long count)
{
    prepare(m);
    double built, before = resident_kb();
    lua_State *L = with_records(m, count, &built);
    double full = resident_kb() - before;
    double wall = wall_ms(), start = cpu_ms();
    if (m->drop) {
        if (hak_lua_drop(L) != 0) fail("hak_lua_drop refused");
    } else {
        lua_close(L);
    }
    /* A shared space keeps pages warm for its next state; that it is emptied too belongs to the end. */
    hak_space_delete(shared_space);
    double ended = cpu_ms() - start;
    wall = wall_ms() - wall;
    printf("{\"build_ms\": %.0f, \"full_mb\": %.1f, \"end_ms\": %.2f, \"end_wall_ms\": %.2f, "
           "\"left_mb\": %.2f}\n",
           built, full / 1024, ended, wall, (resident_kb() - before) / 1024);
}

int main(int argc, char **argv)
{
    const maker *m = NULL;
    long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    for (size_t i = 0; argc == 4 && i < sizeof makers / sizeof *makers; i++)
        if (strcmp(makers[i].name, argv[2]) == 0) m = &makers[i];
    if (!m || count < 1) {
        fprintf(stderr,
                "usage: %s fresh|small|survivors|teardown "
                "builtin|hak-shared|hak-own|hak-drop|hak-drop-huge COUNT\n",
                argv[0]);
        return 2;
    }
    if (strcmp(argv[1], "fresh") == 0) many(m, false, count);
    else if (strcmp(argv[1], "small") == 0) many(m, true, count);
    else if (strcmp(argv[1], "survivors") == 0) survivors(m, count);
    else if (strcmp(argv[1], "teardown") == 0) teardown(m, count);
    else fail("the first argument is fresh, small, survivors or teardown");
    return 0;
}
