/* The allocators that were there before: they own every block that the context does not. */
#ifndef HKP_ORIGINAL_H
#define HKP_ORIGINAL_H

#include "base/core.h"

/* Written before the hooks of the domain are installed; never changed while they are. That of malloc is
 * libc's, for blocks of ld.so and of libraries that found libc's malloc first. */
extern hkp_allocator hkp_original[HKP_DOMAINS];
extern hkp_arena_allocator hkp_original_arena;

/* The functions of an allocator for CPython, by those of a domain. */
#define HKP_ALLOCATOR(name, domain, allocate, allocate_zeroed, resize, release)                              \
    static void *name##_malloc(void *ctx, size_t n)                                                          \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return allocate(domain, n);                                                                          \
    }                                                                                                        \
    static void *name##_calloc(void *ctx, size_t count, size_t n)                                            \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return allocate_zeroed(domain, count, n);                                                            \
    }                                                                                                        \
    static void *name##_realloc(void *ctx, void *p, size_t n)                                                \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        return resize(domain, p, n);                                                                         \
    }                                                                                                        \
    static void name##_free(void *ctx, void *p)                                                              \
    {                                                                                                        \
        (void)ctx;                                                                                           \
        release(domain, p);                                                                                  \
    }

/* hkp_foreign to whom it belongs. */
void hkp_pass_free(hkp_domain domain);
void hkp_pass_arena(size_t n);

#endif
