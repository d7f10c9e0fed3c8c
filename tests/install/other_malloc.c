/* Takes memory by malloc in functions whose names a profile of the shim should have. */
#include <stdlib.h>
#include <string.h>

static void *kept[200];

__attribute__((noinline)) void *take_much(size_t n)
{
    void *p = malloc(n);
    if (p) memset(p, 1, 1);
    return p;
}

__attribute__((noinline)) int keep_much(void)
{
    int failed = 0;
    for (int i = 0; i < 200; i++) {
        kept[i] = take_much((size_t)1 << 20);
        failed += !kept[i];
    }
    return failed;
}

int main(void)
{
    const int failed = keep_much();
    __asm__ volatile("" ::: "memory"); /* no jump */
    return failed;
}
