#include "mappings.h"

#include <stdio.h>

/* Of all hosts without a number of their own. */
static _Atomic size_t shared_used;

static size_t granted(void)
{
    enum { LINUX_DEFAULT = 65530 };
    size_t n = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file && fscanf(file, "%zu", &n) != 1) n = 0;
    if (file) fclose(file);
    return n ? n : LINUX_DEFAULT;
}

void hkw_mappings_init(hkw_mappings *m, size_t most)
{
    m->shared = most == 0;
    m->most = most ? most : granted() / 2;
}

bool hkw_mappings_take(hkw_mappings *m, size_t n)
{
    _Atomic size_t *counter = m->shared ? &shared_used : &m->used;
    size_t used = atomic_load_explicit(counter, memory_order_relaxed);
    do {
        if (used > m->most || n > m->most - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(counter, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (m->shared) atomic_fetch_add_explicit(&m->used, n, memory_order_relaxed);
    return true;
}

void hkw_mappings_give(hkw_mappings *m, size_t n)
{
    atomic_fetch_sub_explicit(&m->used, n, memory_order_relaxed);
    if (m->shared) atomic_fetch_sub_explicit(&shared_used, n, memory_order_relaxed);
}
