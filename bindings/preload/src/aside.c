#include "aside.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))

/* Of libasan, libtsan and liblsan. Weak: other programs have none of them. */
WEAK void *__interceptor_malloc(size_t n);
WEAK void *__interceptor_calloc(size_t count, size_t n);
WEAK void *__interceptor_realloc(void *p, size_t n);
WEAK int __interceptor_posix_memalign(void **out, size_t align, size_t n);
WEAK void __interceptor_free(void *p);
WEAK size_t __interceptor_malloc_usable_size(void *p);

bool hks_aside(void)
{
    return __interceptor_malloc && __interceptor_calloc && __interceptor_realloc &&
           __interceptor_posix_memalign && __interceptor_free && __interceptor_malloc_usable_size;
}

void *hks_aside_malloc(size_t n)
{
    return __interceptor_malloc(n);
}

void *hks_aside_calloc(size_t n)
{
    return __interceptor_calloc(1, n);
}

void *hks_aside_realloc(void *p, size_t n)
{
    return __interceptor_realloc(p, n);
}

void *hks_aside_aligned(size_t align, size_t n)
{
    void *p = NULL;
    const size_t least = sizeof(void *);
    return __interceptor_posix_memalign(&p, align < least ? least : align, n) == 0 ? p : NULL;
}

void hks_aside_free(void *p)
{
    __interceptor_free(p);
}

size_t hks_aside_usable(void *p)
{
    return __interceptor_malloc_usable_size(p);
}

typedef void free_fn(void *p);

/* What libc allocates comes from the malloc that is first in the program. That has another address than the
 * shim's also where the program passes calls on, or where its own table has an entry for the function. */
const char *hks_aside_other(const hak_ctx *ctx)
{
    void *const first = dlsym(RTLD_DEFAULT, "malloc");
    if (!first || first == (void *)(uintptr_t)malloc) return NULL;
    char *const block = strdup("");
    const bool served = !block || hak_owns(ctx, block);
    free_fn *const give = (free_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "free");
    Dl_info where;
    give(block);
    if (served) return NULL;
    return dladdr(first, &where) != 0 && where.dli_fname ? where.dli_fname : "another library";
}

/* By what allocators begin their warnings with: it is there in a program without symbols, too. */
static const char *known_text(const char *at, size_t n)
{
    static const char *const known[][2] = {{"<jemalloc>: ", "jemalloc"}, {"mimalloc: ", "mimalloc"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memmem(at, n, known[i][0], strlen(known[i][0]))) return known[i][1];
    return NULL;
}

/* The first object is the program. */
static int look_inside(struct dl_phdr_info *program, size_t size, void *name)
{
    (void)size;
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & (PF_R | PF_W)) != PF_R) continue;
        const char *found = known_text((const char *)(program->dlpi_addr + part->p_vaddr), part->p_filesz);
        if (found) *(const char **)name = found;
    }
    return 1;
}

/* CPython brings mimalloc from 3.13 on, and takes it where it is built without the GIL or PYTHONMALLOC says so. */
static bool python_leaves_it(void)
{
    const char *asked = getenv("PYTHONMALLOC");
    return dlsym(RTLD_DEFAULT, "Py_GetVersion") && !dlsym(RTLD_DEFAULT, "PyUnstable_Module_SetGIL") &&
           !(asked && strncmp(asked, "mimalloc", strlen("mimalloc")) == 0);
}

const char *hks_aside_inside(void)
{
    const char *name = NULL;
    dl_iterate_phdr(look_inside, &name);
    if (name && strcmp(name, "mimalloc") == 0 && python_leaves_it()) return NULL;
    return name;
}
