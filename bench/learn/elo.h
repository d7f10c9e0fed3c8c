/* Ratings of whole policies: each window is a game against the window before, which another policy played.
 * Softmax chooses who plays; the temperature falls. */
#ifndef ELO_H
#define ELO_H

#include <stdbool.h>
#include <stdint.h>

enum { ELO_MOST = 16 };

typedef struct elo {
    unsigned count, now, before;
    double rating[ELO_MOST], last_cost;
    uint64_t random, windows;
    bool settling; /* the window has the pages of the policy before: it is not judged */
    bool frozen;
} elo;

void elo_init(elo *e, unsigned count, unsigned first);
/* The window cost so much; returns who plays the next one. */
unsigned elo_next(elo *e, double cost);

#endif
