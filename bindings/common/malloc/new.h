/* operator new by its names in the ABI of C++ (Itanium, size_t = unsigned long), so that nothing of a C++
 * library is linked. Where memory is short, the running program's C++ library is asked for its new_handler
 * and throws its own std::bad_alloc. Who includes this has defined the macros of blocks.h, and HKC_NEW, the
 * function that gives the blocks. */
#ifndef HKC_MALLOC_NEW_H
#define HKC_MALLOC_NEW_H

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

/* Whether to try again, after the program's new_handler has run. */
static __attribute__((cold, noinline)) int try_again(int may_throw)
{
    function *(*get_handler)(void) = (function * (*)(void)) of_library("_ZSt15get_new_handlerv");
    function *handler = get_handler ? get_handler() : NULL;
    if (handler) {
        handler();
        return 1;
    }
    if (!may_throw) return 0;
    function *throw_bad_alloc = of_library("_ZSt17__throw_bad_allocv");
    if (throw_bad_alloc) throw_bad_alloc();
    fputs("hakmem: operator new: no memory, and no C++ library to throw std::bad_alloc\n", stderr);
    abort();
}

static inline void *new_plain(size_t n, int may_throw HKC_TOKEN)
{
    for (;;) {
        void *p = HKC_NEW(n HKC_PASS);
        if (__builtin_expect(!!p, 1)) return p;
        if (!try_again(may_throw)) return NULL;
    }
}

static inline void *new_aligned(size_t align, size_t n, int may_throw HKC_TOKEN)
{
    for (;;) {
        void *p = HKC_FUNCTION(aligned_alloc)(align, n HKC_PASS);
        if (__builtin_expect(!!p, 1)) return p;
        if (!try_again(may_throw)) return NULL;
    }
}

/* new, new[], with alignment, with nothrow, with both. */
#define PLAIN(name)                                                                                          \
    void *HKC_FUNCTION(name)(size_t n HKC_TOKEN);                                                            \
    void *HKC_FUNCTION(name)(size_t n HKC_TOKEN)                                                             \
    {                                                                                                        \
        return new_plain(n, 1 HKC_PASS);                                                                     \
    }
#define NOTHROW(name)                                                                                        \
    void *HKC_FUNCTION(name)(size_t n, const void *nothrow HKC_TOKEN);                                       \
    void *HKC_FUNCTION(name)(size_t n, const void *nothrow HKC_TOKEN)                                        \
    {                                                                                                        \
        (void)nothrow;                                                                                       \
        return new_plain(n, 0 HKC_PASS);                                                                     \
    }
#define ALIGNED(name)                                                                                        \
    void *HKC_FUNCTION(name)(size_t n, size_t align HKC_TOKEN);                                              \
    void *HKC_FUNCTION(name)(size_t n, size_t align HKC_TOKEN)                                               \
    {                                                                                                        \
        return new_aligned(align, n, 1 HKC_PASS);                                                            \
    }
#define ALIGNED_NOTHROW(name)                                                                                \
    void *HKC_FUNCTION(name)(size_t n, size_t align, const void *nothrow HKC_TOKEN);                         \
    void *HKC_FUNCTION(name)(size_t n, size_t align, const void *nothrow HKC_TOKEN)                          \
    {                                                                                                        \
        (void)nothrow;                                                                                       \
        return new_aligned(align, n, 0 HKC_PASS);                                                            \
    }
PLAIN(_Znwm)
PLAIN(_Znam)
NOTHROW(_ZnwmRKSt9nothrow_t)
NOTHROW(_ZnamRKSt9nothrow_t)
ALIGNED(_ZnwmSt11align_val_t)
ALIGNED(_ZnamSt11align_val_t)
ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

#endif
