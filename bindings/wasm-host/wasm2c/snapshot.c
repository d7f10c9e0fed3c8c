/* An instance back to a moment: its struct, its memory by an image, its tables by copies. */
#include "parts.h"

#include <string.h>

/* A memory or a table that is a member of the instance. */
typedef struct part {
    hkw_wasm2c_kind kind;
    size_t offset; /* in the instance */
    hak_wasm_image *image;
    void *elements;
    uint32_t count;
} part;

struct hak_wasm_wasm2c_snapshot {
    hak_wasm_host *host;
    void *instance;
    size_t size;
    char *state; /* the struct */
    size_t part_count;
    part parts[];
};

/* Tables of both kinds have the same layout but for what an element is. */
typedef struct table {
    void *data;
    uint32_t max_size, size;
} table;
_Static_assert(sizeof(table) == sizeof(wasm_rt_funcref_table_t) &&
                   sizeof(table) == sizeof(wasm_rt_externref_table_t) &&
                   offsetof(table, size) == offsetof(wasm_rt_funcref_table_t, size) &&
                   offsetof(table, size) == offsetof(wasm_rt_externref_table_t, size),
               "the layout of wasm2c's tables");

static size_t element_of(hkw_wasm2c_kind kind)
{
    return kind == HKW_WASM2C_FUNCREFS ? sizeof(wasm_rt_funcref_t) : sizeof(wasm_rt_externref_t);
}

static size_t size_of(hkw_wasm2c_kind kind)
{
    return kind == HKW_WASM2C_MEMORY ? sizeof(wasm_rt_memory_t) : sizeof(table);
}

static void count_part(void *user, hkw_wasm2c_kind kind, void *at)
{
    (void)kind;
    (void)at;
    ++*(size_t *)user;
}

static void note_part(void *user, hkw_wasm2c_kind kind, void *at)
{
    hak_wasm_wasm2c_snapshot *s = user;
    s->parts[s->part_count++] = (part){kind, (size_t)((char *)at - (char *)s->instance), NULL, NULL, 0};
}

static bool save(hak_wasm_wasm2c_snapshot *s, part *p)
{
    if (p->kind == HKW_WASM2C_MEMORY) {
        wasm_rt_memory_t *memory = (void *)((char *)s->instance + p->offset);
        p->image = hak_wasm_image_take(hkw_wasm2c_host_of(p->kind, memory, memory->data), memory->data);
        return p->image;
    }
    table *t = (void *)((char *)s->instance + p->offset);
    size_t bytes = t->size * element_of(p->kind);
    p->count = t->size;
    p->elements = hak_wasm_alloc(s->host, bytes ? bytes : 1);
    if (p->elements && bytes) memcpy(p->elements, t->data, bytes);
    return p->elements;
}

/* A word of the struct that leads to a memory or table elsewhere. */
static bool imports_a_part(const void *instance, size_t size)
{
    const uintptr_t from = (uintptr_t)instance;
    for (size_t at = 0; at + sizeof(void *) <= size; at += sizeof(void *)) {
        void *word;
        memcpy(&word, (const char *)instance + at, sizeof word);
        if ((uintptr_t)word - from >= size && hkw_wasm2c_is_part(word)) return true;
    }
    return false;
}

hak_wasm_wasm2c_snapshot *hak_wasm_wasm2c_take(void *instance, size_t size, const char **why)
{
    const char *unasked;
    if (!why) why = &unasked;
    *why = "there is no instance";
    if (!instance || size == 0) return NULL;
    *why = "it imports a memory or a table";
    if (imports_a_part(instance, size)) return NULL;
    *why = "there is no host: see hak_wasm_wasm2c_use";
    hak_wasm_host *host = hkw_wasm2c_host();
    if (!host) return NULL;
    *why = "there is no memory for a snapshot, or it is over a limit of the tenant";
    size_t parts = 0;
    hkw_wasm2c_parts_within(instance, size, count_part, &parts);
    hak_wasm_wasm2c_snapshot *s = hak_wasm_calloc(host, 1, sizeof *s + parts * sizeof *s->parts + size);
    if (!s) return NULL;
    s->host = host;
    s->instance = instance;
    s->size = size;
    s->state = (char *)&s->parts[parts];
    hkw_wasm2c_parts_within(instance, size, note_part, s);
    for (size_t i = 0; i < s->part_count; i++) {
        if (save(s, &s->parts[i])) continue;
        hak_wasm_wasm2c_drop(s);
        return NULL;
    }
    memcpy(s->state, instance, size);
    *why = NULL;
    return s;
}

void hak_wasm_wasm2c_drop(hak_wasm_wasm2c_snapshot *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->part_count; i++) {
        hak_wasm_image_drop(s->parts[i].image);
        hak_wasm_free(s->host, s->parts[i].elements);
    }
    hak_wasm_free(s->host, s);
}

/* The elements' block as large as it was, in the context that has it. */
static bool resize(const part *p, table *t)
{
    if (t->size == p->count) return true;
    size_t bytes = p->count * element_of(p->kind);
    void *data = hak_wasm_realloc(hkw_wasm2c_host_of(p->kind, t, t->data), t->data, bytes ? bytes : 1);
    if (!data && t->size < p->count) return false;
    if (data) t->data = data;
    t->size = p->count;
    return true;
}

static bool load(hak_wasm_wasm2c_snapshot *s, const part *p, bool rests)
{
    void *at = (char *)s->instance + p->offset;
    if (p->kind == HKW_WASM2C_MEMORY) {
        wasm_rt_memory_t *memory = at;
        hak_wasm_host *host = hkw_wasm2c_host_of(p->kind, memory, memory->data);
        if ((rests ? hak_wasm_memory_rest : hak_wasm_memory_reset)(host, memory->data, p->image) != 0)
            return false;
        memory->size = (uint32_t)hak_wasm_image_size(p->image);
        memory->pages = (uint32_t)(hak_wasm_image_size(p->image) / HKW_WASM2C_PAGE);
        return true;
    }
    table *t = at;
    if (!t->data || p->count > t->max_size || !resize(p, t)) return false;
    if (p->count) memcpy(t->data, p->elements, p->count * element_of(p->kind));
    return true;
}

static int reset(void *instance, hak_wasm_wasm2c_snapshot *s, bool rests)
{
    if (!s || instance != s->instance) return -1;
    for (size_t i = 0; i < s->part_count; i++) {
        const part *p = &s->parts[i];
        if (!load(s, p, rests)) return -1;
        memcpy(s->state + p->offset, (char *)instance + p->offset, size_of(p->kind));
    }
    memcpy(instance, s->state, s->size);
    return 0;
}

int hak_wasm_wasm2c_reset(void *instance, hak_wasm_wasm2c_snapshot *s)
{
    return reset(instance, s, false);
}

int hak_wasm_wasm2c_rest(void *instance, hak_wasm_wasm2c_snapshot *s)
{
    return reset(instance, s, true);
}

void hak_wasm_wasm2c_wake(hak_wasm_wasm2c_snapshot *s)
{
    for (size_t i = 0; s && i < s->part_count; i++) {
        const part *p = &s->parts[i];
        if (p->kind != HKW_WASM2C_MEMORY) continue;
        wasm_rt_memory_t *memory = (void *)((char *)s->instance + p->offset);
        hak_wasm_memory_wake(hkw_wasm2c_host_of(p->kind, memory, memory->data), memory->data);
    }
}
