// Builds in which everything takes several times as long, and address space is short.
#ifndef TEST_SLOW_BUILD_H
#define TEST_SLOW_BUILD_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SLOW_BUILD 1
#endif
#endif

#endif
