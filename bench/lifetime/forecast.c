#include "forecast.h"

#include <stdlib.h>

/* Classes as the core has them: multiples of 16, then steps of a quarter of a power of two and less. */
static uint64_t class_of(uint32_t size)
{
    uint64_t width = 16;
    while (width * 8 < size)
        width *= 2;
    return (size + width - 1) / width * width;
}

uint64_t forecast_key_of(const block *b, forecast_key key)
{
    static const unsigned depth[] = {
        [KEY_LINE] = 0, [KEY_LINE_SIZE] = 0, [KEY_FOUR_SIZE] = 1, [KEY_TWELVE_SIZE] = 2};
    uint64_t class = key == KEY_LINE ? 0 : class_of(b->asked),
             site = key == KEY_SIZE ? 0 : b->site[depth[key]];
    return (site << 32 ^ class) + 1;
}

static struct tally *find(const forecast *f, uint64_t key)
{
    size_t i = key * 0x9e3779b97f4a7c15u >> 24 & (f->size - 1);
    while (f->tallies[i].key && f->tallies[i].key != key)
        i = (i + 1) & (f->size - 1);
    return &f->tallies[i];
}

forecast forecast_learn(const history *h, forecast_key key)
{
    forecast f = {.key = key, .size = 1024};
    while (f.size < 2 * h->block_count)
        f.size *= 2;
    f.tallies = zeros(f.size, sizeof *f.tallies);
    for (const block *b = h->blocks; b < h->blocks + h->block_count; b++) {
        uint64_t k = forecast_key_of(b, key);
        struct tally *t = find(&f, k);
        f.keys += !t->key;
        t->key = k;
        t->all++;
        t->lasted += b->lasted;
    }
    return f;
}

void forecast_tell(const forecast *f, const history *h, double share, bool *said)
{
    for (size_t i = 0; i < h->block_count; i++) {
        const struct tally *t = find(f, forecast_key_of(&h->blocks[i], f->key));
        said[i] = t->key && t->lasted >= share * t->all;
    }
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 1;
}

quality forecast_quality(const history *h, const bool *said)
{
    double told[2] = {0}, lasted[2] = {0}, both[2] = {0};
    for (size_t i = 0; i < h->block_count; i++) {
        const block *b = &h->blocks[i];
        double weight[2] = {1, b->most};
        for (unsigned k = 0; k < 2; k++) {
            told[k] += said[i] ? weight[k] : 0;
            lasted[k] += b->lasted ? weight[k] : 0;
            both[k] += said[i] && b->lasted ? weight[k] : 0;
        }
    }
    return (quality){ratio(both[0], told[0]), ratio(both[0], lasted[0]), ratio(both[1], told[1]),
                     ratio(both[1], lasted[1])};
}

void forecast_free(forecast *f)
{
    free(f->tallies);
}
