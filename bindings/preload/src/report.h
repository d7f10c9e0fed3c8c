/* The report at exit. */
#ifndef HK_PRELOAD_REPORT_H
#define HK_PRELOAD_REPORT_H

/* Where reports go from now on: a file that is appended to, or "" for what is standard error now (programs
 * close it before they end). */
void hk_report_open(const char *file);
/* One report, in one write. */
void hk_report_write(void);

#endif
