/* Turns: who of those that want to run a script may do so now, and how much CPU time each has used.
 *
 * As many scripts run at once as there are processors; the others wait. A script that runs asks at every tick
 * of the clock (turn_tick) whether it may go on. The next turn goes to the customer who has used the least
 * CPU time lately, and a customer's own scripts alternate: eight endless loops of one customer get no more
 * together than the single script of another. "Lately" halves every second, so that nobody saves up time by
 * doing nothing, nor pays for long for having had the machine alone.
 *
 * A quota limits the CPU time of a customer over time. Each customer has an account: so many seconds flow in
 * a second, up to a most, and scripts take out what they use. A script begins while there is something in the
 * account, and may end with a debt, which has to be paid back first: in the long run nobody has more than
 * flows in. A debt is at most the CPU time of one script for each processor. */
#ifndef WASM_SERVER_TURNS_H
#define WASM_SERVER_TURNS_H

#include <pthread.h>
#include <stdbool.h>

typedef struct turns turns;

/* A customer's part, all zero at first. Only turns.c touches it, under its lock. */
typedef struct share {
    double seconds; /* CPU time of all scripts so far */
    double lately;  /* the same, half as much for each second that has passed since, ... */
    double at;      /* ... as of this time */
    double taken;   /* from the account, as of `at`: below 0 never, above quota.most is a debt */
} share;

/* For each customer; all zero = none. */
typedef struct quota {
    double rate; /* seconds of CPU time in a second */
    double most; /* that a customer can save up */
} quota;

typedef enum turn_state {
    TURN_GOES,
    TURN_OVER_QUOTA, /* the customer's account is empty */
    TURN_ENDS        /* the server does */
} turn_state;

/* A script's, on the stack of the thread that runs it. */
typedef struct turn {
    turns *all;
    share *share;
    double seconds; /* CPU time used so far, as of the latest tick */
    double since;   /* the thread's CPU clock then */
    bool running;
    struct turn *next;   /* in the list of those who wait */
    pthread_cond_t wake; /* running, or the end */
} turn;

/* processors: scripts at once. NULL = no memory. */
turns *turns_new(unsigned processors, quota q);
void turns_delete(turns *all);
/* No turn begins or goes on from now on. */
void turns_end(turns *all);

/* Waits for a turn. turn_end is to be called after TURN_GOES alone. */
turn_state turn_begin(turns *all, share *s, turn *t);
/* Counts the CPU time and waits if it is another's turn. false = the end. */
bool turn_tick(turn *t);
void turn_end(turn *t);

/* CPU time of a customer's scripts so far. */
double share_seconds(turns *all, const share *s);
/* Seconds until the account is no longer empty; 0 = now. */
double share_wait(turns *all, const share *s);

#endif
