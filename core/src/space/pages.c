/* Maps memory for single big blocks, and makes single calls of the OS table for the layers above. */
#include "space/calls.h"
#include "space/purge.h"

int hk_space_commit(hak_space *s, void *p, size_t n)
{
    if (!hk_commits(s)) return 0;
    hk_lock_take(&s->lock);
    int failed = hk_call_commit(s, p, n);
    hk_lock_drop(&s->lock);
    return failed;
}

void hk_space_decommit(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    hk_purge_part(s, p, n);
    hk_lock_drop(&s->lock);
}

void hk_space_huge(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    hk_call_huge(s, p, n);
    hk_lock_drop(&s->lock);
}

/* With the lock held. Fresh pages take the place of retained ones. */
static void count_mapped(hak_space *s, size_t n, size_t less)
{
    HK_ASSERT(hk_lock_held(&s->lock) && hk_get(&s->mapped_bytes) >= less);
    hk_set(&s->reserved_bytes, hk_get(&s->reserved_bytes) + n - less);
    hk_set(&s->mapped_bytes, hk_get(&s->mapped_bytes) + n - less);
    if (less > n) {
        hk_add(&s->purged_bytes, less - n);
    } else {
        hk_add(&s->clean_mapped, n - less);
        hk_purge_bytes(s, n - less);
    }
    hk_note_resident(s);
}

static void *map(hak_space *s, size_t n, size_t align)
{
    if (s->own) {
        hk_add(&s->os_calls, 1);
        return hk_os_map(n, align, s->below);
    }
    void *p = hk_call_reserve(s, n, align);
    if (!p || hk_call_open(s, p, n) == 0) return p;
    hk_call_release(s, p, n);
    return NULL;
}

void *hk_space_map(hak_space *s, size_t n, size_t align)
{
    if (s->buffer_only) return NULL;
    hk_lock_take(&s->lock);
    void *p = map(s, n, align);
    /* Retained units may be all that a limit leaves. */
    if (!p && hk_purge_for(s, n)) p = map(s, n, align);
    if (p) count_mapped(s, n, 0);
    hk_lock_drop(&s->lock);
    return p;
}

void hk_space_unmap(hak_space *s, void *p, size_t n)
{
    hk_lock_take(&s->lock);
    hk_call_release(s, p, n);
    count_mapped(s, 0, n);
    hk_lock_drop(&s->lock);
}

void *hk_space_remap(hak_space *s, void *p, size_t old_n, size_t n)
{
    if (!s->os.remap) return NULL;
    hk_lock_take(&s->lock);
    hk_add(&s->os_calls, 1);
    void *q = s->os.remap(s->os.user, p, old_n, n, s->below);
    if (!q && n > old_n && hk_purge_for(s, n - old_n)) {
        hk_add(&s->os_calls, 1);
        q = s->os.remap(s->os.user, p, old_n, n, s->below);
    }
    if (q) count_mapped(s, n, old_n);
    hk_lock_drop(&s->lock);
    return q;
}
