/* An unchanged program in C, for test_tokens.py, which compiles it with -fsanitize=alloc-token. */
#include <stdlib.h>

struct item {
    struct item *next;
    int number;
};

typedef struct {
    long a[3];
} named;

void *volatile kept;
struct item *volatile some_item;
named *volatile table; /* debug information has only types that are used */

int main(void)
{
    for (int i = 0; i < 20; i++)
        kept = malloc(sizeof(struct item));
    kept = calloc(10, sizeof(struct item *));
    for (int i = 0; i < 3; i++)
        kept = (char *)malloc(50);
    for (int i = 0; i < 5; i++)
        table = aligned_alloc(64, sizeof(named) * 8);
    double *numbers = malloc(10 * sizeof(double));
    kept = numbers;
    numbers = realloc(numbers, 100 * sizeof(double));
    kept = numbers;
    kept = malloc(sizeof(double));
    return kept == NULL;
}
