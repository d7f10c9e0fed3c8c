/* HAKMEM=key=value,... */
#ifndef HK_PRELOAD_SETTINGS_H
#define HK_PRELOAD_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hk_settings {
    size_t limit;        /* bytes; 0 = none */
    unsigned trim;       /* seconds between trims; 0 = none */
    bool report;         /* at exit */
    char file[PATH_MAX]; /* where; "" = stderr */
    char name[64];       /* in the report */
} hk_settings;

/* Reads `text` (NULL = empty). What is wrong is left out and told in one line on stderr. */
void hk_settings_read(hk_settings *settings, const char *text);

#endif
