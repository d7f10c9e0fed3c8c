#include "report.h"

#include <stdlib.h>
#include <string.h>

typedef int order_fn(const void *, const void *);

static order_fn *rows_order;

/* Rows lie in the order that they had: of equal ones the first has the lower address. */
static int by_order_and_place(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const int order = rows_order(x, y);
    return order ? order : (x > y) - (x < y);
}

void hkr_sort(void *rows, size_t n, size_t size, order_fn *order)
{
    if (n < 2) return;
    char *copy = malloc(n * size), **places = malloc(n * sizeof *places);
    if (copy && places) {
        memcpy(copy, rows, n * size);
        for (size_t i = 0; i < n; i++)
            places[i] = copy + i * size;
        rows_order = order;
        qsort(places, n, sizeof *places, by_order_and_place);
        for (size_t i = 0; i < n; i++)
            memcpy((char *)rows + i * size, places[i], size);
    } else {
        qsort(rows, n, size, order);
    }
    free(copy);
    free(places);
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
