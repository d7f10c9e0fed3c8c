/* Functions that hand on what others ask for: zmalloc, operator new, xstrdup. A table with a line for each of them
 * would tell nothing, so a stack of machine code stands at the first function that is none. They are known by
 * their names, or by how many stacks end in them. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROUNDS = 4, STACKS_LEAST = 16, CALLERS_LEAST = 4, SHARE = 4 /* a quarter of all */ };

typedef struct function {
    size_t stacks, callers;
} function;

static bool is_called_so(const char *name)
{
    static const char *const parts[] = {"alloc", "strdup", "strndup", "memdup", "operator new"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = name; *at; at++)
            if (strncasecmp(at, parts[i], strlen(parts[i])) == 0) return true;
    return false;
}

/* The first frame that is no wrapper; `depth` = there is none. */
static size_t first_own(const hkr_context *c, const hkr_stack *s)
{
    size_t i = 0;
    while (i < s->depth && c->frames[s->frames[i]].wrapper)
        i++;
    return i;
}

static bool is_native(const hkr_context *c, const hkr_stack *s)
{
    for (size_t i = 0; i < s->depth; i++)
        if (!c->frames[s->frames[i]].native) return false;
    return true;
}

/* Numbers of functions, by frame, from 0; how many there are. */
static size_t number_functions(const hkr_context *c, size_t *numbers, bool *ok)
{
    json_t *names = json_object();
    size_t count = 0;
    *ok = names;
    for (size_t i = 0; i < c->frame_count && *ok; i++) {
        const json_t *there = json_object_get(names, c->frames[i].function);
        numbers[i] = there ? (size_t)json_integer_value(there) : count++;
        if (!there && json_object_set_new_nocheck(names, c->frames[i].function,
                                                  json_integer((json_int_t)numbers[i])) != 0)
            *ok = false;
    }
    json_decref(names);
    return count;
}

/* How many stacks end in each function, and how many functions call it there. */
static bool count_stacks(const hkr_context *c, const size_t *numbers, function *functions, size_t *all)
{
    json_t *pairs = json_object();
    bool ok = pairs;
    for (size_t i = 0; i < c->stack_count && ok; i++) {
        const hkr_stack *s = &c->stacks[i];
        const size_t at = is_native(c, s) ? first_own(c, s) : s->depth;
        char key[64];
        if (at + 1 >= s->depth) continue;
        function *f = &functions[numbers[s->frames[at]]];
        (*all)++;
        f->stacks++;
        snprintf(key, sizeof key, "%zu %zu", numbers[s->frames[at]], numbers[s->frames[at + 1]]);
        if (json_object_get(pairs, key)) continue;
        f->callers++;
        ok = json_object_set_new_nocheck(pairs, key, json_null()) == 0;
    }
    json_decref(pairs);
    return ok;
}

static bool is_wrapper(const function *f, size_t all, const char *name)
{
    if (f->callers >= 2 && is_called_so(name)) return true;
    return f->callers >= CALLERS_LEAST && all >= STACKS_LEAST && f->stacks * SHARE >= all;
}

/* A wrapper may call another one: once the inner one is known, the outer one is the first. */
static bool find(hkr_context *c, const size_t *numbers, function *functions, size_t count)
{
    bool more = true;
    for (int round = 0; round < ROUNDS && more; round++) {
        size_t all = 0;
        more = false;
        memset(functions, 0, (count + 1) * sizeof *functions);
        if (!count_stacks(c, numbers, functions, &all)) return false;
        for (size_t i = 0; i < c->frame_count; i++) {
            hkr_frame *f = &c->frames[i];
            if (f->wrapper || !is_wrapper(&functions[numbers[i]], all, f->function)) continue;
            f->wrapper = more = true;
        }
    }
    return true;
}

bool hkr_find_wrappers(hkr_context *c)
{
    bool ok;
    size_t *numbers = malloc((c->frame_count + 1) * sizeof *numbers);
    function *functions = malloc((c->frame_count + 1) * sizeof *functions);
    ok = numbers && functions;
    const size_t count = ok ? number_functions(c, numbers, &ok) : 0;
    if (ok) ok = find(c, numbers, functions, count);
    free(numbers);
    free(functions);
    return ok;
}

/* A function in C that Lua has called has a name and no line: the line is that of the call. */
static size_t line_of(const hkr_context *c, const hkr_stack *s)
{
    size_t named = s->depth;
    for (size_t i = 0; i < s->depth; i++) {
        const hkr_frame *f = &c->frames[s->frames[i]];
        if (f->native) continue;
        if (*f->file) return i;
        if (named == s->depth) named = i;
    }
    return named;
}

size_t hkr_site_at(const hkr_context *c, const hkr_stack *s)
{
    size_t at = line_of(c, s);
    if (at == s->depth) at = first_own(c, s);
    return at < s->depth ? at : 0;
}

const hkr_frame *hkr_site(const hkr_context *c, const hkr_stack *s)
{
    return s->depth > 0 ? &c->frames[s->frames[hkr_site_at(c, s)]] : NULL;
}
