/* operator new and delete, by their names in the ABI of C++ (Itanium, size_t = unsigned long), so that
 * nothing of a C++ library is linked. Where memory is short, the running program's C++ library is asked for
 * its new_handler and throws its own std::bad_alloc. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void function(void);

/* A function of the C++ library, which may have come later, with dlopen, and out of sight. */
static function *of_library(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        if (library) found = dlsym(library, name);
    }
    return (function *)(uintptr_t)found;
}

static __attribute__((cold, noinline)) void *try_harder(size_t align, size_t n, int may_throw)
{
    function *(*get_handler)(void) = (function * (*)(void)) of_library("_ZSt15get_new_handlerv");
    for (;;) {
        function *handler = get_handler ? get_handler() : NULL;
        if (!handler) break;
        handler();
        void *p = align != 0 ? aligned_alloc(align, n) : malloc(n);
        if (p) return p;
    }
    if (!may_throw) return NULL;
    function *throw_bad_alloc = of_library("_ZSt17__throw_bad_allocv");
    if (throw_bad_alloc) throw_bad_alloc();
    fputs("hakmem: operator new: no memory, and no C++ library to throw std::bad_alloc\n", stderr);
    abort();
}

static inline void *new_plain(size_t n, int may_throw)
{
    void *p = malloc(n);
    return __builtin_expect(!!p, 1) ? p : try_harder(0, n, may_throw);
}

static inline void *new_aligned(size_t align, size_t n, int may_throw)
{
    void *p = aligned_alloc(align, n);
    return __builtin_expect(!!p, 1) ? p : try_harder(align, n, may_throw);
}

/* new, new[], with alignment, with nothrow, with both. */
#define PLAIN(name)                                                                                          \
    void *name(size_t n);                                                                                    \
    void *name(size_t n)                                                                                     \
    {                                                                                                        \
        return new_plain(n, 1);                                                                              \
    }
#define NOTHROW(name)                                                                                        \
    void *name(size_t n, const void *nothrow);                                                               \
    void *name(size_t n, const void *nothrow)                                                                \
    {                                                                                                        \
        (void)nothrow;                                                                                       \
        return new_plain(n, 0);                                                                              \
    }
#define ALIGNED(name)                                                                                        \
    void *name(size_t n, size_t align);                                                                      \
    void *name(size_t n, size_t align)                                                                       \
    {                                                                                                        \
        return new_aligned(align, n, 1);                                                                     \
    }
#define ALIGNED_NOTHROW(name)                                                                                \
    void *name(size_t n, size_t align, const void *nothrow);                                                 \
    void *name(size_t n, size_t align, const void *nothrow)                                                  \
    {                                                                                                        \
        (void)nothrow;                                                                                       \
        return new_aligned(align, n, 0);                                                                     \
    }
PLAIN(_Znwm)
PLAIN(_Znam)
NOTHROW(_ZnwmRKSt9nothrow_t)
NOTHROW(_ZnamRKSt9nothrow_t)
ALIGNED(_ZnwmSt11align_val_t)
ALIGNED(_ZnamSt11align_val_t)
ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

/* The real size and alignment are in the heap: what else is passed to delete is not needed. */
#define DELETE(name)                                                                                         \
    void name(void *p);                                                                                      \
    void name(void *p)                                                                                       \
    {                                                                                                        \
        free(p);                                                                                             \
    }
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
