/* plain MODULE: a C program without libstdc++ that loads a C++ module by dlopen, out of the global scope, and
 * allocates before and after main. Prints what it saw. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *early;

__attribute__((constructor)) static void before_main(void)
{
    early = malloc(1000);
    strcpy(early, "early");
}

/* After the shim's own end. */
__attribute__((destructor(101))) static void after_main(void)
{
    char *late = malloc(5000);
    memset(late, 1, 5000);
    free(late);
    free(early);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    puts(early);
    for (int i = 0; i < 3; i++) {
        void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (module == NULL) {
            fprintf(stderr, "plain: %s\n", dlerror());
            return 1;
        }
        char *(*text)(void) = (char *(*)(void))(uintptr_t)dlsym(module, "module_text");
        int (*catches)(void) = (int (*)(void))(uintptr_t)dlsym(module, "module_catches_bad_alloc");
        char *copy = text();
        printf("%s %d\n", copy, catches());
        dlclose(module);
        free(copy);
    }
    return 0;
}
