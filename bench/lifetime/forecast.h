/* Forecasts of which blocks live at a trough, from an earlier run of the program. */
#ifndef FORECAST_H
#define FORECAST_H

#include "blocks.h"

/* What is known of a block when it is allocated. */
typedef enum forecast_key {
    KEY_SIZE,
    KEY_LINE,
    KEY_LINE_SIZE,
    KEY_FOUR_SIZE,
    KEY_TWELVE_SIZE,
    KEYS
} forecast_key;

/* For each key, how many blocks there were and how many of them lived at a trough. */
typedef struct forecast {
    forecast_key key;
    struct tally {
        uint64_t key;
        uint32_t all, lasted;
    } * tallies;
    size_t size, keys;
} forecast;

typedef struct quality {
    double precision_blocks, recall_blocks, precision_bytes, recall_bytes; /* of "long-lived" */
} quality;

uint64_t forecast_key_of(const block *b, forecast_key key);
forecast forecast_learn(const history *h, forecast_key key);
/* Says of each block whether at least `share` of the blocks of its key were long-lived. Of unknown keys no.
 */
void forecast_tell(const forecast *f, const history *h, double share, bool *said);
quality forecast_quality(const history *h, const bool *said);
void forecast_free(forecast *f);

#endif
