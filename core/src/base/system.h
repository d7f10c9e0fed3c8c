/* Which system the core is compiled for: the one place that asks. os.h says what a system does; its file is
 * os_linux.c, os_darwin.c or os_windows.c, each of which is empty for the others. The tests set one of these
 * to run the file of another system over a kernel that behaves as there. */
#ifndef HK_SYSTEM_H
#define HK_SYSTEM_H

#if !defined(HK_LINUX) && !defined(HK_DARWIN) && !defined(HK_WINDOWS)
#if defined(__linux__)
#define HK_LINUX 1
#elif defined(__APPLE__) || defined(__FreeBSD__)
#define HK_DARWIN 1
#elif defined(_WIN32)
#define HK_WINDOWS 1
#else
#error "hakmem has no file for this system: docs/internals/porting.md says what such a file does"
#endif
#endif

/* What snprintf() understands is that of C, also where the C library of the system has another one. */
#ifdef __MINGW32__
#define __USE_MINGW_ANSI_STDIO 1
#define HK_FORMAT(at, first) __attribute__((format(gnu_printf, at, first)))
#else
#define HK_FORMAT(at, first) __attribute__((format(printf, at, first)))
#endif

/* On data declared in one file and defined in another: reached without the global offset table, which PE does
 * not have. */
#ifdef HK_WINDOWS
#define HK_HIDDEN
#else
#define HK_HIDDEN __attribute__((visibility("hidden")))
#endif

#endif
