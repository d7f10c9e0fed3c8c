/* HK_ASSERT stops a program that is compiled with HAKMEM_ASSERT, and costs nothing in others. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static int computed;

static bool holds(bool result)
{
    computed++;
    return result;
}

#ifdef HAKMEM_ASSERT
/* In place of the core's. */
void hk_assert_failed(const char *what)
{
    bool one = computed == 2 && strstr(what, "assertions.c:") && strstr(what, ": holds(false)\n");
    if (!one) printf("%d computed, the last: %s", computed, what);
    exit(!one);
}
#endif

int main(void)
{
    HK_ASSERT(holds(true));
    HK_ASSERT(holds(false));
#ifdef HAKMEM_ASSERT
    printf("nothing stopped\n");
    return 1;
#else
    if (computed) printf("%d computed\n", computed);
    return computed;
#endif
}
