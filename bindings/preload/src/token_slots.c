#include "token_slots.h"

#include "common/pages.h"

#include <errno.h>
#include <stdbool.h>

/* As the pages that come later, so that both of two slots lie in it: hks_token_second(). */
static const _Alignas(2 * sizeof(hks_token_slot)) hks_token_slot nothing[HKS_TOKEN_SLOTS];
_Thread_local const hks_token_slot *hks_token_slots __attribute__((tls_model("initial-exec"))) = nothing;
static _Thread_local unsigned misses __attribute__((tls_model("initial-exec")));

enum { FIRST_MISSES = 64, FURTHER_MISSES = 8 };

void hks_token_forget(void)
{
    if (hks_token_slots != nothing) hkc_pages_give((void *)(uintptr_t)hks_token_slots, sizeof nothing);
    hks_token_slots = nothing;
    misses = 0;
}

static bool make_slots(void)
{
    const int saved = errno;
    hks_token_slot *slots = hkc_pages(sizeof nothing);
    errno = saved;
    if (slots) hks_token_slots = slots;
    return slots;
}

static hks_token_slot *writable(const hks_token_slot *s)
{
    return (hks_token_slot *)(uintptr_t)s;
}

static bool same(const hks_token_slot *a, const hks_token_slot *b)
{
    return a->token == b->token && a->n == b->n;
}

/* The latest of two goes first. Where more than two allocations have the same slots, they would push each other
 * out for ever: so a slot that is taken is taken over after some misses only. */
void hks_token_remember(const hks_token_slot *now)
{
    const hks_token_slot *s = hks_token_slot_of(now->n, now->token), *second = hks_token_second(s);
    if (same(s, now) || same(second, now)) {
        writable(same(s, now) ? s : second)->bin = now->bin;
        return;
    }
    const unsigned missed = misses++;
    if (hks_token_slots == nothing) {
        if (missed % FIRST_MISSES != FIRST_MISSES - 1 || !make_slots()) return;
        s = second = hks_token_slot_of(now->n, now->token);
    }
    if (s->token) {
        if (missed % FURTHER_MISSES != 0) return;
        *writable(second) = *s;
    }
    *writable(s) = *now;
}
