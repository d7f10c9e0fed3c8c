/* Turns: who of those that want to run a script may do so now, and how much CPU time each has used.
 *
 * As many scripts run at once as there are processors; the others wait. A script that runs asks at every tick
 * of the clock (turn_tick) whether it may go on. The next turn goes to the customer who has used the least
 * CPU time lately, and a customer's own scripts alternate: eight endless loops of one customer get no more
 * together than the single script of another. "Lately" halves every second, so that nobody saves up time by
 * doing nothing, nor pays for long for having had the machine alone. */
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
} share;

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
turns *turns_new(unsigned processors);
void turns_delete(turns *all);
/* No turn begins or goes on from now on. */
void turns_end(turns *all);

/* Waits for a turn. false = the end; turn_end is not to be called then. */
bool turn_begin(turns *all, share *s, turn *t);
/* Counts the CPU time and waits if it is another's turn. false = the end. */
bool turn_tick(turn *t);
void turn_end(turn *t);

/* CPU time of a customer's scripts so far. */
double share_seconds(turns *all, const share *s);

#endif
