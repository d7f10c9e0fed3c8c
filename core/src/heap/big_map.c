/* Finds big blocks of all contexts of a space by address, under the lock of the space. The map is a treap.
 * Its nodes are the records of the blocks, so it asks for no memory. A node's priority is a hash of its
 * address, so the treap needs no random numbers and has the same form in whatever order blocks came. A
 * look-up takes about 2 log2(n) steps. */
#include "heap/big_map.h"

#include "base/random.h"

/* Mixed twice: a weaker hash of addresses at a fixed distance can rise or fall for thousands of them, and the
 * tree would be a list. */
static uint64_t priority(const hk_big *b)
{
    uint64_t at = (uint64_t)(uintptr_t)b->p >> 12;
    return hk_random_next(&at);
}

static hk_big **side(hk_big *b, const char *p)
{
    return p < b->p ? &b->left : &b->right;
}

static void enter(hak_space *s, hk_big *b)
{
    hk_big **at = &s->bigs, **left = &b->left, **right = &b->right;
    uint64_t own = priority(b);
    while (*at && priority(*at) >= own)
        at = side(*at, b->p);
    hk_big *below = *at;
    HK_ASSERT(below != b);
    *at = b;
    /* What was here goes to either side of it. */
    while (below) {
        if (below->p < b->p) {
            *left = below;
            left = &below->right;
            below = *left;
        } else {
            *right = below;
            right = &below->left;
            below = *right;
        }
    }
    *left = *right = NULL;
}

static void leave_tree(hak_space *s, hk_big *b)
{
    hk_big **at = &s->bigs, *left = b->left, *right = b->right;
    while (*at != b) {
        HK_ASSERT(*at);
        at = side(*at, b->p);
    }
    while (left && right) {
        if (priority(left) >= priority(right)) {
            *at = left;
            at = &left->right;
            left = *at;
        } else {
            *at = right;
            at = &right->left;
            right = *at;
        }
    }
    *at = left ? left : right;
}

/* The last that begins at p or before. */
static hk_big *find_in_tree(const hak_space *s, const char *p)
{
    hk_big *found = NULL;
    for (hk_big *b = s->bigs; b; b = *side(b, p))
        if (b->p <= p) found = b;
    return found;
}

void hk_big_enter(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    enter(s, b);
    uintptr_t start = (uintptr_t)b->p, end = start + hk_big_mapped(b);
    if (start < hk_get(&s->big_low)) hk_set(&s->big_low, start);
    if (end > hk_get(&s->big_high)) hk_set(&s->big_high, end);
    hk_lock_drop(&s->lock);
}

void hk_big_leave(hak_space *s, hk_big *b)
{
    hk_lock_take(&s->lock);
    leave_tree(s, b);
    hk_lock_drop(&s->lock);
}

/* Most pointers that callers ask about belong to others, and lie far away. */
static bool may_be_big(const hak_space *s, const void *p)
{
    return (uintptr_t)p >= hk_get(&s->big_low) && (uintptr_t)p < hk_get(&s->big_high);
}

hk_big *hk_big_at(hak_space *s, const void *p)
{
    if ((uintptr_t)p & (HK_PAGE - 1) || !may_be_big(s, p)) return NULL;
    hk_lock_take(&s->lock);
    hk_big *b = find_in_tree(s, p);
    if (b && b->p != p) b = NULL;
    hk_lock_drop(&s->lock);
    return b;
}

hk_big *hk_big_find(const hak_ctx *ctx, const void *p)
{
    hk_big *b = hk_big_at(ctx->space, p);
    return b && b->ctx == ctx ? b : NULL;
}

hak_ctx *hk_big_owner(hak_space *s, const void *p)
{
    if (!may_be_big(s, p)) return NULL;
    hk_lock_take(&s->lock);
    const hk_big *b = find_in_tree(s, p);
    size_t size = b ? __atomic_load_n(&b->size, __ATOMIC_RELAXED) : 0;
    hak_ctx *owner = b && (uintptr_t)p - (uintptr_t)b->p < size && !b->cached ? b->ctx : NULL;
    hk_lock_drop(&s->lock);
    return owner;
}

/* As deep as the tree: about 2 log2(n) calls at a time. */
static size_t sum_within(const hk_big *b, uintptr_t from, uintptr_t to)
{
    if (!b) return 0;
    size_t n = hk_bytes_within((uintptr_t)b->p, hk_big_mapped(b), from, to);
    if (from < (uintptr_t)b->p) n += sum_within(b->left, from, to);
    if (to > (uintptr_t)b->p) n += sum_within(b->right, from, to);
    return n;
}

size_t hk_big_bytes_within(hak_space *s, uintptr_t from, uintptr_t to)
{
    hk_lock_take(&s->lock);
    size_t n = sum_within(s->bigs, from, to);
    hk_lock_drop(&s->lock);
    return n;
}

void hk_big_unmap_all(hak_space *s)
{
    while (s->bigs) {
        hk_big *b = s->bigs;
        leave_tree(s, b);
        hk_space_unmap(s, b->p, hk_big_mapped(b));
    }
}
