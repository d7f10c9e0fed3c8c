#include "profile/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` beside `count` in an array. */
static bool reserve(void **array, size_t *room, size_t count, size_t more, size_t size)
{
    if (count + more <= *room) return true;
    size_t larger = *room != 0 ? *room * 2 : 64;
    while (larger < count + more)
        larger *= 2;
    void *moved = realloc(*array, larger * size);
    if (!moved) return false;
    *array = moved;
    *room = larger;
    return true;
}

static bool copy_one(void *user, const hak_profile_stack *s)
{
    hkl_copy *c = user;
    void *stacks = c->stacks, *frames = c->frames;
    c->failed = !reserve(&stacks, &c->room, c->count, 1, sizeof *c->stacks);
    c->stacks = stacks;
    if (!c->failed)
        c->failed = !reserve(&frames, &c->frame_room, c->frame_count, s->depth + 1, sizeof *c->frames);
    c->frames = frames;
    if (c->failed) return false;
    if (s->depth > 0) memcpy(c->frames + c->frame_count, s->frames, s->depth * sizeof *c->frames);
    c->stacks[c->count++] = *s;
    c->frame_count += s->depth;
    return true;
}

static int larger_first(const void *a, const void *b)
{
    const hak_profile_stack *x = a, *y = b;
    if (x->live_bytes != y->live_bytes) return x->live_bytes < y->live_bytes ? 1 : -1;
    if (x->alloc_bytes != y->alloc_bytes) return x->alloc_bytes < y->alloc_bytes ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool copy_growth(void *user, const hak_profile_growth *g)
{
    hkl_copy *c = user;
    void *grown = c->grown;
    c->failed = !reserve(&grown, &c->grown_room, c->grown_count, 1, sizeof *c->grown);
    c->grown = grown;
    if (!c->failed) c->grown[c->grown_count++] = *g;
    return !c->failed;
}

static bool copy_marks(hkl_copy *c, const hak_ctx *ctx)
{
    const int room = hak_profile_marks(ctx, NULL, 0);
    if (room <= 0) return true;
    c->marks = calloc((size_t)room, sizeof *c->marks);
    c->names = calloc((size_t)room, sizeof *c->names);
    if (!c->marks || !c->names) return false;
    for (int i = 0; i < room; i++)
        c->marks[i].size = sizeof *c->marks;
    const int there = hak_profile_marks(ctx, c->marks, (size_t)room);
    for (int i = 0; i < there && i < room; i++) {
        snprintf(c->names[i], sizeof c->names[i], "%s", c->marks[i].name);
        c->marks[i].name = c->names[i];
        c->mark_count++;
    }
    return true;
}

/* Leaks first, what fills last. */
static int urgency(const hak_profile_growth *g)
{
    return g->leak ? 2 : g->trend != HAK_PROFILE_FILLS;
}

static int leaks_first(const void *a, const void *b)
{
    const hak_profile_growth *x = a, *y = b;
    if (urgency(x) != urgency(y)) return urgency(y) - urgency(x);
    return (x->bytes_a_window < y->bytes_a_window) - (x->bytes_a_window > y->bytes_a_window);
}

static void order(hkl_copy *c)
{
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->stacks[i].frames = c->frames + at;
        at += c->stacks[i].depth;
    }
    if (c->count > 0) qsort(c->stacks, c->count, sizeof *c->stacks, larger_first);
    if (c->grown_count > 0) qsort(c->grown, c->grown_count, sizeof *c->grown, leaks_first);
}

bool hkl_copy_take(hkl_copy *c, const hak_ctx *ctx)
{
    hak_profile_visit(ctx, copy_one, c);
    if (!c->failed) hak_profile_grown(ctx, copy_growth, c);
    if (!c->failed) c->failed = !copy_marks(c, ctx);
    order(c);
    return !c->failed;
}

bool hkl_copy_take_diff(hkl_copy *c, const hak_ctx *ctx, unsigned from, unsigned to, bool *there)
{
    *there = hak_profile_diff(ctx, from, to, copy_one, c) >= 0;
    order(c);
    return !c->failed;
}

void hkl_copy_drop(hkl_copy *c)
{
    free(c->stacks);
    free(c->frames);
    free(c->grown);
    free(c->marks);
    free(c->names);
    *c = (hkl_copy){.stacks = NULL};
}
