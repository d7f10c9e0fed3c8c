#include "space/calls.h"

void *hk_call_reserve(hak_space *s, size_t n, size_t align)
{
    hk_add(&s->os_calls, 1);
    return s->os.reserve(s->os.user, n, align, s->below);
}

void hk_call_release(hak_space *s, void *p, size_t n)
{
    hk_add(&s->os_calls, 1);
    s->os.release(s->os.user, p, n);
}

int hk_call_open(hak_space *s, void *p, size_t n)
{
    if (!s->os.commit) return 0;
    uintptr_t from = (uintptr_t)p & ~(HK_PAGE - 1), to = hk_align_up((uintptr_t)p + n, HK_PAGE);
    hk_add(&s->os_calls, 1);
    return s->os.commit(s->os.user, (void *)from, to - from);
}

int hk_call_commit(hak_space *s, void *p, size_t n)
{
    return hk_commits(s) ? hk_call_open(s, p, n) : 0;
}

void hk_call_huge(hak_space *s, void *p, size_t n)
{
    hk_add(&s->os_calls, 1);
    s->os.huge(s->os.user, p, n);
}

int hk_call_protect(hak_space *s, void *p, size_t n, bool access)
{
    hk_add(&s->os_calls, 1);
    return s->os.protect(s->os.user, p, n, access);
}
