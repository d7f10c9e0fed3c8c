/* Every interleaving of a small history of core/src/base/mpsc.h, spurious failures of the compare-and-swap
 * included: two threads push, the second one twice with a link that came back empty, the owner takes and
 * sends the links back. Each operation on a head is one step; threads are coroutines; the schedule is a list
 * of choices that is counted through like a number. Sequentially consistent: what weaker orders do is left to
 * ThreadSanitizer. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

typedef struct hk_link *hk_mpsc;
static void step(void);
static bool choose_failure(void);
#define HK_MPSC_LOAD(stack) (step(), *(stack))
#define HK_MPSC_SWAP_IF(stack, seen, link) swap_if(stack, seen, link)
#define HK_MPSC_SWAP(stack, link) swap(stack, link)
static bool swap_if(hk_mpsc *stack, struct hk_link **seen, struct hk_link *link);
static struct hk_link *swap(hk_mpsc *stack, struct hk_link *link);
#include "base/mpsc.h"

enum { THREADS = 3, OWNER = 2, CHOICES = 64, STACK = 64 << 10, SPURIOUS = 1 };

static ucontext_t scheduler, threads[THREADS];
static char stacks[THREADS][STACK];
static bool done[THREADS];
static unsigned running, choice[CHOICES], options[CHOICES], depth, failures;

static unsigned choose(unsigned n)
{
    if (n == 1) return 0;
    if (depth == CHOICES) abort();
    options[depth] = n;
    return choice[depth++];
}

static void step(void)
{
    swapcontext(&threads[running], &scheduler);
}

static bool choose_failure(void)
{
    if (failures == SPURIOUS || choose(2) == 0) return false;
    failures++;
    return true;
}

static bool swap_if(hk_mpsc *stack, struct hk_link **seen, struct hk_link *link)
{
    step();
    if (*stack == *seen && !choose_failure()) {
        *stack = link;
        return true;
    }
    *seen = *stack;
    return false;
}

static struct hk_link *swap(hk_mpsc *stack, struct hk_link *link)
{
    step();
    struct hk_link *was = *stack;
#ifdef BROKEN_SWAP /* what the test must see */
    step();
#endif
    *stack = link;
    return was;
}

/* ---- The history ---------------------------------------------------------------------------------- */

static hk_mpsc queue, empties;
static hk_link links[3];
static unsigned pushed, taken;

static void take_all(void)
{
    for (hk_link *at = hk_mpsc_take(&queue), *next; at; at = next) {
        next = at->next;
        taken++;
        hk_mpsc_push(&empties, at);
    }
}

static void first_sender(void)
{
    hk_mpsc_push(&queue, &links[0]);
    pushed++;
}

static void second_sender(void)
{
    hk_mpsc_push(&queue, &links[1]);
    pushed++;
    hk_link *again = hk_mpsc_take(&empties);
    if (!again) again = &links[2];
    hk_mpsc_push(&queue, again);
    pushed++;
}

static void owner(void)
{
    take_all();
}

static void enter(int i)
{
    static void (*const body[THREADS])(void) = {first_sender, second_sender, owner};
    body[i]();
    done[i] = true;
    swapcontext(&threads[i], &scheduler);
}

static unsigned length(hk_mpsc stack)
{
    unsigned n = 0;
    for (hk_link *at = stack; at && n < 10; at = at->next)
        n++;
    return n;
}

static bool run(void)
{
    queue = empties = NULL;
    memset(links, 0, sizeof links);
    memset(done, 0, sizeof done);
    pushed = taken = depth = failures = 0;
    for (int i = 0; i < THREADS; i++) {
        getcontext(&threads[i]);
        threads[i].uc_stack.ss_sp = stacks[i];
        threads[i].uc_stack.ss_size = STACK;
        threads[i].uc_link = NULL;
        makecontext(&threads[i], (void (*)(void))enter, 1, i);
        /* To its first operation, before which nothing can be seen of it. */
        running = (unsigned)i;
        swapcontext(&scheduler, &threads[i]);
    }
    for (;;) {
        unsigned ready[THREADS], n = 0;
        for (unsigned i = 0; i < THREADS; i++)
            if (!done[i]) ready[n++] = i;
        if (n == 0) break;
        running = ready[choose(n)];
        swapcontext(&scheduler, &threads[running]);
    }
    /* Nothing is lost or there twice: what was pushed was taken or is still there. */
    unsigned left = length(queue);
    return pushed == 3 && taken + left == pushed && left <= 3;
}

int main(void)
{
    unsigned long schedules = 0;
    for (;;) {
        if (!run()) {
            printf("schedule %lu: %u pushed, %u taken, %u left\n", schedules, pushed, taken, length(queue));
            return 1;
        }
        schedules++;
        while (depth > 0 && choice[depth - 1] + 1 == options[depth - 1])
            choice[--depth] = 0;
        if (depth == 0) break;
        choice[depth - 1]++;
    }
    printf("%lu schedules\n", schedules);
    return schedules > 1000 ? 0 : 1;
}
