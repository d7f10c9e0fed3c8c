/* The report at exit. */
#ifndef HKS_PRELOAD_REPORT_H
#define HKS_PRELOAD_REPORT_H

#include "common/parts.h"

#include <stdbool.h>
#include <stddef.h>

/* Where reports go from now on: a file that is appended to, or "" for what is standard error now (programs
 * close it before they end). */
void hks_report_open(const char *file);
/* Where the memory of the process is, mappings of libraries included; to be closed. NULL = it is not told. */
hkc_parts *hks_report_parts(void);
/* One report, in one write. */
void hks_report_write(void);
/* The same for malloc_stats_print. print: NULL = to standard error. */
void hks_report_print(void (*print)(void *to, const char *text), void *to);
/* A line on standard error, or what that was when the program began: no WHAT in FILE, and why. Allocates
 * nothing. */
void hks_report_failed(const char *what, const char *file, int error);
/* Such a line now, where WHAT at the end could not be written into the file. */
void hks_report_try(const char *what, const char *file);
/* A line there, and the end of the process, whose program is not started. */
void hks_report_stop(const char *why) __attribute__((noreturn));
/* To write there; -1 = the program has closed it. */
int hks_report_descriptor(void);
/* A line there: what is wrong with a setting. */
void hks_report_line(const char *what);
/* So many bytes there. A signal handler may call it. */
void hks_report_text(const char *bytes, size_t n);
/* A line on standard error, at most HKS_MISUSE_LINES of them in a process. Allocates nothing. true = it was
 * told. */
enum { HKS_MISUSE_LINES = 100 };
bool hks_report_misuse(const char *error, const void *p, const char *what);

#endif
