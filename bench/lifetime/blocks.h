/* Events as record.c writes them, made into blocks: where each came from, and whether it lived at a trough.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "record.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct block {
    uint32_t asked, most; /* bytes at first, bytes at its largest */
    uint32_t born;        /* troughs before it */
    uint32_t site[RECORD_DEPTHS];
    bool lasted; /* lived at a trough */
} block;

enum { PLAY_ALLOC, PLAY_FREE, PLAY_REALLOC, PLAY_MARK };

typedef struct step {
    uint32_t block, size, op;
} step;

/* Up to the last trough: what comes behind has no outcome. */
typedef struct history {
    step *steps;
    block *blocks;
    size_t step_count, block_count;
    unsigned marks;
} history;

/* Ends the process with a message if the file is not one, or has no trough. */
history history_load(const char *file);
void history_free(history *h);
/* Ends the process if there is no memory. */
void *zeros(size_t count, size_t size);
_Noreturn void fail(const char *what, const char *name);

#endif
