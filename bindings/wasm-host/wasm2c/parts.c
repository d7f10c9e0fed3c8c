/* Which memories and tables there are. wasm2c allocates each by the address of its struct, a member of the
 * instance: what lies within an instance is the instance's. */
#define _GNU_SOURCE
#include "parts.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

typedef struct node {
    const void *part;
    hak_wasm_host *host;
} node;

static void *trees[HKW_WASM2C_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const node *)left)->part, b = (uintptr_t)((const node *)right)->part;
    return a < b ? -1 : a > b;
}

/* Under the lock. */
static node *find(hkw_wasm2c_kind kind, const void *part)
{
    const node key = {part, NULL};
    node *const *found = tfind(&key, &trees[kind], by_address);
    return found ? *found : NULL;
}

static node *add(hkw_wasm2c_kind kind, const void *part)
{
    node *n = malloc(sizeof *n);
    if (!n) return NULL;
    n->part = part;
    if (tsearch(n, &trees[kind], by_address)) return n;
    free(n);
    return NULL;
}

bool hkw_wasm2c_add(hkw_wasm2c_kind kind, const void *part, hak_wasm_host *host)
{
    pthread_mutex_lock(&lock);
    node *n = find(kind, part); /* of an instance that was given up without being freed */
    if (!n) n = add(kind, part);
    if (n) n->host = host;
    pthread_mutex_unlock(&lock);
    return n;
}

void hkw_wasm2c_remove(hkw_wasm2c_kind kind, const void *part)
{
    pthread_mutex_lock(&lock);
    node *n = find(kind, part);
    if (n) tdelete(n, &trees[kind], by_address);
    free(n);
    pthread_mutex_unlock(&lock);
}

hak_wasm_host *hkw_wasm2c_part_host(hkw_wasm2c_kind kind, const void *part)
{
    pthread_mutex_lock(&lock);
    const node *n = find(kind, part);
    hak_wasm_host *host = n ? n->host : NULL;
    pthread_mutex_unlock(&lock);
    return host;
}

bool hkw_wasm2c_is_part(const void *p)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int kind = 0; kind < HKW_WASM2C_KINDS && !found; kind++)
        found = find((hkw_wasm2c_kind)kind, p);
    pthread_mutex_unlock(&lock);
    return found;
}

typedef struct range {
    uintptr_t from;
    size_t size;
    hkw_wasm2c_kind kind;
    hkw_wasm2c_part_fn *fn;
    void *user;
} range;

/* What visit() looks for, under the lock: twalk passes nothing on to it, and twalk_r is glibc's alone. */
static const range *wanted;

static void visit(const void *at, VISIT order, int depth)
{
    void *part = (void *)(uintptr_t)(*(const node *const *)at)->part;
    (void)depth;
    if (order != leaf && order != postorder) return;
    if ((uintptr_t)part - wanted->from < wanted->size) wanted->fn(wanted->user, wanted->kind, part);
}

void hkw_wasm2c_parts_within(const void *from, size_t size, hkw_wasm2c_part_fn *fn, void *user)
{
    range r = {(uintptr_t)from, size, HKW_WASM2C_MEMORY, fn, user};
    pthread_mutex_lock(&lock);
    wanted = &r;
    for (; r.kind < HKW_WASM2C_KINDS; r.kind++)
        twalk(trees[r.kind], visit);
    wanted = NULL;
    pthread_mutex_unlock(&lock);
}
