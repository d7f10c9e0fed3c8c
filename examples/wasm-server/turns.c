#define _GNU_SOURCE
#include "turns.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

struct turns {
    pthread_mutex_t lock; /* of all that is below, and of all shares */
    turn *waiting;        /* the longest first */
    unsigned idle;        /* processors without a script; none while somebody waits */
    bool ended;
    quota quota;
};

turns *turns_new(unsigned processors, quota q)
{
    turns *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    pthread_mutex_init(&all->lock, NULL);
    all->idle = processors;
    all->quota = q;
    return all;
}

void turns_delete(turns *all)
{
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double used_lately(const share *s, double now)
{
    return s->lately * exp2(s->at - now);
}

/* What is missing in the account after what has flowed in since. */
static double taken_now(const turns *all, const share *s, double now)
{
    return fmax(0, s->taken - (now - s->at) * all->quota.rate);
}

static bool over_quota(const turns *all, const share *s)
{
    return all->quota.rate > 0 && taken_now(all, s, seconds(CLOCK_MONOTONIC)) >= all->quota.most;
}

/* Time in which the thread waited, for a turn or for the kernel, is not counted. */
static void count(turn *t, double now)
{
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), used = cpu - t->since;
    share *s = t->share;
    t->since = cpu;
    t->seconds += used;
    s->seconds += used;
    s->lately = used_lately(s, now) + used;
    s->taken = taken_now(t->all, s, now) + used;
    s->at = now;
}

/* Where the pointer to the next one is, who has waited longest among the scripts of a customer. */
static turn **next_turn(turns *all, double now)
{
    turn **best = &all->waiting;
    double least = *best ? used_lately((*best)->share, now) : 0;
    for (turn **at = best; *at; at = &(*at)->next) {
        double used = used_lately((*at)->share, now);
        if (used < least) {
            least = used;
            best = at;
        }
    }
    return best;
}

static void give_turn(turn **at)
{
    turn *t = *at;
    *at = t->next;
    t->running = true;
    pthread_cond_signal(&t->wake);
}

/* false = the end; whether it runs then shows in the turn. */
static bool wait_for_turn(turns *all, turn *t)
{
    turn **last = &all->waiting;
    while (*last)
        last = &(*last)->next;
    *last = t;
    t->next = NULL;
    t->running = false;
    if (all->idle > 0) {
        all->idle--;
        give_turn(last);
    }
    while (!t->running && !all->ended)
        pthread_cond_wait(&t->wake, &all->lock);
    if (!t->running) {
        turn **at = &all->waiting;
        while (*at != t)
            at = &(*at)->next;
        *at = t->next;
    }
    return !all->ended;
}

static void leave(turn *t)
{
    turns *all = t->all;
    if (t->running && all->waiting) give_turn(next_turn(all, seconds(CLOCK_MONOTONIC)));
    else if (t->running) all->idle++;
}

turn_state turn_begin(turns *all, share *s, turn *t)
{
    *t = (turn){.all = all, .share = s};
    pthread_cond_init(&t->wake, NULL);
    pthread_mutex_lock(&all->lock);
    turn_state state = over_quota(all, s) ? TURN_OVER_QUOTA : TURN_GOES;
    if (state == TURN_GOES && !wait_for_turn(all, t)) state = TURN_ENDS;
    /* Others of the customer's may have used up the account meanwhile. */
    else if (state == TURN_GOES && over_quota(all, s)) state = TURN_OVER_QUOTA;
    if (state != TURN_GOES) leave(t);
    pthread_mutex_unlock(&all->lock);
    if (state != TURN_GOES) pthread_cond_destroy(&t->wake);
    t->since = seconds(CLOCK_THREAD_CPUTIME_ID);
    return state;
}

bool turn_tick(turn *t)
{
    turns *all = t->all;
    double now = seconds(CLOCK_MONOTONIC);
    pthread_mutex_lock(&all->lock);
    count(t, now);
    bool going = !all->ended;
    turn **next = next_turn(all, now);
    if (going && *next && used_lately((*next)->share, now) <= t->share->lately) {
        give_turn(next);
        going = wait_for_turn(all, t);
    }
    pthread_mutex_unlock(&all->lock);
    return going;
}

void turn_end(turn *t)
{
    turns *all = t->all;
    pthread_mutex_lock(&all->lock);
    count(t, seconds(CLOCK_MONOTONIC));
    leave(t);
    pthread_mutex_unlock(&all->lock);
    pthread_cond_destroy(&t->wake);
}

void turns_end(turns *all)
{
    pthread_mutex_lock(&all->lock);
    all->ended = true;
    for (turn *t = all->waiting; t; t = t->next)
        pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&all->lock);
}

double share_seconds(turns *all, const share *s)
{
    pthread_mutex_lock(&all->lock);
    double seconds = s->seconds;
    pthread_mutex_unlock(&all->lock);
    return seconds;
}

double share_wait(turns *all, const share *s)
{
    pthread_mutex_lock(&all->lock);
    double over = taken_now(all, s, seconds(CLOCK_MONOTONIC)) - all->quota.most, rate = all->quota.rate;
    pthread_mutex_unlock(&all->lock);
    return rate > 0 && over >= 0 ? fmax(over / rate, 1e-3) : 0;
}
