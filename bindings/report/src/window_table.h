/* What stacks held when the windows of a profile began, for a table with a column for each of some windows. The
 * name windows.h would hide a header of Windows. */
#ifndef HKR_WINDOW_TABLE_H
#define HKR_WINDOW_TABLE_H

#include "report.h"

enum { HKR_WINDOWS = 8 };

/* Chooses at most `most` beginnings of windows, evenly over all of them, the oldest first, by the clock of the
 * process. Returns how many; 0 = there are no windows. */
size_t hkr_window_times(const hkr_report *report, size_t most, double times[HKR_WINDOWS]);
/* Returns what a history held at that time: when the last window began that is no later. */
double hkr_window_live(const hkr_context *context, const json_t *history, double time);
/* Writes how long ago a moment was: "-90 s", "-30 min". Returns text. */
const char *hkr_window_age(char text[16], const hkr_report *report, double time);

#endif
