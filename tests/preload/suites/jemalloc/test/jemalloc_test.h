/* What jemalloc's tests of the standard functions use of jemalloc's test library, so that they test whatever
 * malloc the process has. */
#ifndef TESTS_PRELOAD_SUITES_JEMALLOC_H
#define TESTS_PRELOAD_SUITES_JEMALLOC_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LG_SIZEOF_PTR 3
#define BUFERROR_BUF 64
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN
#define TEST_MALLOC_SIZE(p) malloc_usable_size(p)

static int failed_checks;

#define test_fail(...)                                                                                       \
    (failed_checks++, printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), (void)putchar('\n'))
#define expect_that(holds, ...) ((holds) ? (void)0 : test_fail(__VA_ARGS__))
#define expect_d_eq(a, b, ...) expect_that((a) == (b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) expect_that((a) != (b), __VA_ARGS__)
#define expect_false(a, ...) expect_that(!(a), __VA_ARGS__)
#define expect_ptr_not_null(a, ...) expect_that((a) != NULL, __VA_ARGS__)
#define assert(a) expect_that(a, #a)

typedef void test_function(void);
#define TEST_BEGIN(name)                                                                                     \
    static void name(void)                                                                                   \
    {
#define TEST_END }
#define test(...) run_tests((test_function *const[]){__VA_ARGS__, NULL})

static int run_tests(test_function *const *tests)
{
    int n = 0;
    for (; tests[n]; n++)
        tests[n]();
    printf("%d tests, %d failed checks\n", n, failed_checks);
    return failed_checks != 0;
}

static inline void set_errno(int error)
{
    errno = error;
}

static inline int get_errno(void)
{
    return errno;
}

static inline int buferror(int error, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", strerror(error));
    return 0;
}

/* The tests ask for nothing but a purge by it. */
static inline int mallctl(const char *name, void *old, size_t *old_size, void *value, size_t size)
{
    (void)name, (void)old, (void)old_size, (void)value, (void)size;
    malloc_trim(0);
    return 0;
}

#endif
