/* Included before everything in a build of the core for tests/fuzz/fuzz_shared.cpp and
 * tests/core/test_interleavings.cpp: the test says which thread it is that calls, and so one thread plays many. */
#ifndef HK_TEST_TURNS_H
#define HK_TEST_TURNS_H

/* No header yet: the core says first which functions of the system it wants. */
extern __UINTPTR_TYPE__ hk_test_thread;

/* The definition, which has an argument (void), gets another name; calls, which have none, take what the test
 * says. */
#define hk_thread_register(what) HK_TEST_REGISTER_##what
#define HK_TEST_REGISTER_void hk_own_register(void)
#define HK_TEST_REGISTER_ hk_test_thread

#endif
