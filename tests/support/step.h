/* Included before everything in a build of the core for tests/core/test_interleavings.cpp: each synchronizing
 * operation (ordered atomics, locks, fences) asks the test whether another thread shall go on here. Relaxed
 * counters do not. For gcc. */
#ifndef HK_TEST_STEP_H
#define HK_TEST_STEP_H

#include <stdatomic.h>
#include <stdbool.h>

void hk_test_step(void);    /* before an operation */
void hk_test_read(void);    /* before a look at the map, or a change of what is read without a lock */
void hk_test_fence(void);   /* between two stores of which a child of a fork may find one */
void hk_test_blocked(void); /* a lock was not free */

#define HK_TEST_AT(order)                                                                                    \
    do {                                                                                                     \
        if ((order) != memory_order_relaxed) hk_test_step();                                                 \
    } while (0)

#undef atomic_load_explicit
#define atomic_load_explicit(p, order)                                                                       \
    __extension__({                                                                                          \
        HK_TEST_AT(order);                                                                                   \
        __auto_type hk_p = (p);                                                                              \
        __typeof__((void)0, *hk_p) hk_v;                                                                     \
        __atomic_load(hk_p, &hk_v, order);                                                                   \
        hk_v;                                                                                                \
    })
#undef atomic_load
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)

#define __atomic_load_n(p, order)                                                                            \
    __extension__({                                                                                          \
        if ((order) != __ATOMIC_RELAXED) hk_test_read();                                                     \
        __atomic_load_n(p, order);                                                                           \
    })

#define __atomic_store_n(p, v, order)                                                                        \
    __extension__({                                                                                          \
        if ((order) != __ATOMIC_RELAXED) hk_test_read();                                                     \
        __atomic_store_n(p, v, order);                                                                       \
    })

#undef atomic_store_explicit
#define atomic_store_explicit(p, v, order)                                                                   \
    __extension__({                                                                                          \
        HK_TEST_AT(order);                                                                                   \
        __auto_type hk_p = (p);                                                                              \
        __typeof__((void)0, *hk_p) hk_v = (v);                                                               \
        __atomic_store(hk_p, &hk_v, order);                                                                  \
    })
#undef atomic_store
#define atomic_store(p, v) atomic_store_explicit(p, v, memory_order_seq_cst)

#undef atomic_exchange_explicit
#define atomic_exchange_explicit(p, v, order)                                                                \
    __extension__({                                                                                          \
        hk_test_step();                                                                                      \
        __auto_type hk_p = (p);                                                                              \
        __typeof__((void)0, *hk_p) hk_v = (v), hk_old;                                                       \
        __atomic_exchange(hk_p, &hk_v, &hk_old, order);                                                      \
        hk_old;                                                                                              \
    })

#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(p, expected, v, good, bad)                                     \
    __extension__({                                                                                          \
        hk_test_step();                                                                                      \
        __auto_type hk_p = (p);                                                                              \
        __typeof__((void)0, *hk_p) hk_v = (v);                                                               \
        __atomic_compare_exchange(hk_p, expected, &hk_v, 0, good, bad);                                      \
    })
#undef atomic_compare_exchange_weak
#define atomic_compare_exchange_weak(p, expected, v)                                                         \
    atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_seq_cst, memory_order_seq_cst)

/* Of locks alone. */
#undef atomic_compare_exchange_strong_explicit
#define atomic_compare_exchange_strong_explicit(p, expected, v, good, bad)                                   \
    __extension__({                                                                                          \
        hk_test_step();                                                                                      \
        __auto_type hk_p = (p);                                                                              \
        __typeof__((void)0, *hk_p) hk_v = (v);                                                               \
        bool hk_taken = __atomic_compare_exchange(hk_p, expected, &hk_v, 0, good, bad);                      \
        if (!hk_taken) hk_test_blocked();                                                                    \
        hk_taken;                                                                                            \
    })
#define HK_LOCK_PLAIN 1
#undef atomic_signal_fence
#define atomic_signal_fence(order) hk_test_fence()

#endif
