#include "report.h"

#include <stdlib.h>
#include <string.h>

typedef int order_fn(const void *, const void *);

/* Puts the left one first where two rows compare as equal. */
static void merge(char *to, const char *left, const char *right, const char *end, size_t size,
                  order_fn *order)
{
    for (const char *l = left, *r = right; l < right || r < end; to += size) {
        const char **from = r >= end || (l < right && order(l, r) <= 0) ? &l : &r;
        memcpy(to, *from, size);
        *from += size;
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where there is no memory for a copy. */
static void insert_each(char *rows, size_t n, size_t size, order_fn *order)
{
    for (char *row = rows; row < rows + n * size; row += size)
        for (char *at = row; at > rows && order(at - size, at) > 0; at -= size)
            for (size_t i = 0; i < size; i++) {
                const char byte = at[i];
                at[i] = at[i - size];
                at[i - size] = byte;
            }
}

void hkr_sort(void *rows, size_t n, size_t size, order_fn *order)
{
    if (n < 2) return;
    char *copy = malloc(n * size), *from = rows, *to = copy;
    if (!copy) {
        insert_each(rows, n, size, order);
        return;
    }
    for (size_t all = n * size, width = size; width < all; width *= 2) {
        for (size_t left = 0; left < all; left += 2 * width) {
            const size_t right = least(left + width, all), end = least(right + width, all);
            merge(to + left, from + left, from + right, from + end, size, order);
        }
        char *const now = to;
        to = from;
        from = now;
    }
    if (from != rows) memcpy(rows, from, n * size);
    free(copy);
}

json_t **hkr_sorted(const json_t *array, order_fn *order)
{
    const size_t n = json_array_size(array);
    json_t **all = malloc((n + 1) * sizeof(json_t *));
    if (!all) return NULL;
    for (size_t i = 0; i < n; i++)
        all[i] = json_array_get(array, i);
    hkr_sort(all, n, sizeof(json_t *), order);
    return all;
}
