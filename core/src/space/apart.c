#include "space/apart.h"

#include "space/calls.h"

/* Bytes without access at both ends of such pages. Without them the kernel would join neighbours with the same
 * access to one mapping, and /proc could not tell how many resident bytes each has. */
#define EDGE HK_UNIT

/* In front of the bytes that are given. */
typedef struct hk_apart {
    struct hk_apart *next, **link;
    size_t bytes; /* without the edges */
} hk_apart;

_Static_assert(sizeof(hk_apart) <= HK_BESIDE, "it lies where nothing else does");

void *hk_apart_take(hak_space *s, size_t n)
{
    size_t bytes = hk_align_up(n + 2 * HK_BESIDE, HK_PAGE);
    hk_lock_take(&s->lock);
    char *edge = hk_call_reserve(s, bytes + 2 * EDGE, HK_PAGE);
    hk_apart *a = NULL;
    if (edge) {
        if (hk_call_open(s, edge + EDGE, bytes) == 0) a = (hk_apart *)(void *)(edge + EDGE);
        else hk_call_release(s, edge, bytes + 2 * EDGE);
    }
    if (a) {
        *a = (hk_apart){s->apart, &s->apart, bytes};
        if (a->next) a->next->link = &a->next;
        s->apart = a;
        hk_add(&s->reserved_bytes, bytes);
    }
    hk_lock_drop(&s->lock);
    return a ? (char *)a + HK_BESIDE : NULL;
}

static void apart_release(hak_space *s, hk_apart *a)
{
    *a->link = a->next;
    if (a->next) a->next->link = a->link;
    size_t bytes = a->bytes;
    hk_sub(&s->reserved_bytes, bytes);
    hk_call_release(s, (char *)a - EDGE, bytes + 2 * EDGE);
}

void hk_apart_give(hak_space *s, void *p)
{
    if (!p) return;
    hk_lock_take(&s->lock);
    apart_release(s, (hk_apart *)(void *)((char *)p - HK_BESIDE));
    hk_lock_drop(&s->lock);
}

size_t hk_apart_bytes_within(hak_space *s, uintptr_t from, uintptr_t to)
{
    size_t n = 0;
    hk_lock_take(&s->lock);
    for (const hk_apart *a = s->apart; a; a = a->next)
        n += hk_bytes_within((uintptr_t)a, a->bytes, from, to);
    hk_lock_drop(&s->lock);
    return n;
}

void hk_apart_end(hak_space *s)
{
    while (s->apart)
        apart_release(s, s->apart);
}
