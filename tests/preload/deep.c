/* A module to be loaded with RTLD_DEEPBIND: frees what the program allocated, and the other way round. */
#include <stdlib.h>
#include <string.h>

char *deep_exchange(char *old);
char *deep_exchange(char *old)
{
    char *text = malloc(40000);
    strcpy(text, old);
    free(old);
    return realloc(text, 100);
}
