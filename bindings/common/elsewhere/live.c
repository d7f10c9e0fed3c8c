/* Nobody can look at a process while it runs on macOS and on Windows: the socket of live.h, and what it asks of
 * who connects, are Linux's. */
#include "common/live.h"

#include <stdio.h>
#include <string.h>

static const char not_here[] = "a process can be looked at while it runs on Linux alone";

const char *hkc_live_setting(const char *text, const char **place)
{
    *place = NULL;
    return strcmp(text, "off") == 0 ? NULL : not_here;
}

bool hkc_live_begin(const hkc_live_options *options, char error[HKC_LIVE_ERROR])
{
    (void)options;
    snprintf(error, HKC_LIVE_ERROR, "%s", not_here);
    return false;
}

void hkc_live_end(void)
{
}
