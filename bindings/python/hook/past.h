/* What C code takes past a limit: memory that it maps itself, and malloc where that is not served. */
#ifndef HKP_PAST_H
#define HKP_PAST_H

/* Says in one line how much that is, if there is a limit and it is worth a line. For the end of Python, while
 * the program's objects live. */
void hkp_past_tell(void);

#endif
