/* helper WHAT: what the shim has to bear, in a C program of its own. Prints what it saw; 2 = unknown WHAT. */
#include "forks.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

/* The module lies in the program's own search path (RUNPATH), which is that of the caller of dlopen. */
static int deep(void)
{
    void *module = dlopen("libpreload_deep.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (module == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    char *(*exchange)(char *) = (char *(*)(char *))(uintptr_t)dlsym(module, "deep_exchange");
    for (int i = 0; i < 100; i++) {
        char *text = malloc(5000);
        strcpy(text, "exchanged");
        text = exchange(text);
        if (i == 99) puts(text);
        free(text);
    }
    return 0;
}

/* Each is an error of the program; volatile, or else the compiler sees it. */
static void *volatile block;

static int misuse(const char *kind)
{
    static char here[64];
    setvbuf(stdout, NULL, _IONBF, 0);
    size_t size = strstr(kind, "big") ? 3 << 20 : strstr(kind, "middle") ? 100000 : 100;
    block = malloc(size);
    if (strncmp(kind, "double", 6) == 0) {
        free(block);
        free(block);
    } else if (strncmp(kind, "inside", 6) == 0) {
        free((char *)block + 16);
    } else if (strncmp(kind, "static", 6) == 0) {
        block = here;
        free((char *)block + 32);
    } else if (strncmp(kind, "realloc", 7) == 0) {
        free(block);
        block = realloc(block, size + 1);
        puts(block ? "resized" : "NULL");
    } else if (strncmp(kind, "many", 4) == 0) {
        for (int i = 0; i < 1000; i++)
            free((char *)block + 16);
    } else if (strcmp(kind, "behind") == 0) {
        ((volatile char *)block)[112] = 1;
    } else if (strcmp(kind, "beside") == 0) {
        ((volatile char *)block)[100] = 1;
        free(block);
    } else if (strcmp(kind, "fits") == 0) {
        memset(block, 1, malloc_usable_size(block));
        free(block);
    } else if (strcmp(kind, "overflow") == 0) {
        ((volatile char *)block)[100] = 1;
        free(block);
    } else if (strcmp(kind, "after-free") == 0) {
        free(block);
        ((volatile char *)block)[50] = 1;
        for (int i = 0; i < 300; i++)
            free(malloc(100));
    } else if (strcmp(kind, "after") == 0) {
        free(block);
        ((volatile char *)block)[50] = 1;
    } else if (strncmp(kind, "none", 4) != 0) {
        return 2;
    }
    puts("went on");
    return 0;
}

static int told(int bad)
{
    printf("%d bad\n", bad);
    return 0;
}

int main(int argc, char **argv)
{
    const forks_allocator libc = {malloc, free};
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "deep") == 0) return deep();
    if (strcmp(what, "fork-beside-flush") == 0) return told(fork_beside_flush(libc, 2000));
    if (strcmp(what, "fork-in-handler") == 0) return told(fork_in_handler(libc, 1000, 500));
    if (strcmp(what, "misuse") == 0 && argc > 2) return misuse(argv[2]);
    return 2;
}
