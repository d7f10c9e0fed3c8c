/* Which memories and tables there are. wasm2c allocates each by the address of its struct, a member of the
 * instance: what lies within an instance is the instance's. */
#define _GNU_SOURCE
#include "parts.h"

#include <pthread.h>
#include <search.h>

static void *trees[HKW_WASM2C_KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int by_address(const void *a, const void *b)
{
    return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

bool hkw_wasm2c_add(hkw_wasm2c_kind kind, const void *part)
{
    pthread_mutex_lock(&lock);
    bool ok = tsearch(part, &trees[kind], by_address);
    pthread_mutex_unlock(&lock);
    return ok;
}

void hkw_wasm2c_remove(hkw_wasm2c_kind kind, const void *part)
{
    pthread_mutex_lock(&lock);
    tdelete(part, &trees[kind], by_address);
    pthread_mutex_unlock(&lock);
}

bool hkw_wasm2c_is_part(const void *p)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int kind = 0; kind < HKW_WASM2C_KINDS && !found; kind++)
        found = tfind(p, &trees[kind], by_address);
    pthread_mutex_unlock(&lock);
    return found;
}

struct range {
    uintptr_t from;
    size_t size;
    hkw_wasm2c_kind kind;
    hkw_wasm2c_part_fn *fn;
    void *user;
};

static void visit(const void *node, VISIT order, void *closure)
{
    struct range *r = closure;
    void *part = *(void *const *)node;
    if (order != leaf && order != postorder) return;
    if ((uintptr_t)part - r->from < r->size) r->fn(r->user, r->kind, part);
}

void hkw_wasm2c_parts_within(const void *from, size_t size, hkw_wasm2c_part_fn *fn, void *user)
{
    struct range r = {(uintptr_t)from, size, HKW_WASM2C_MEMORY, fn, user};
    pthread_mutex_lock(&lock);
    for (; r.kind < HKW_WASM2C_KINDS; r.kind++)
        twalk_r(trees[r.kind], visit, &r);
    pthread_mutex_unlock(&lock);
}
