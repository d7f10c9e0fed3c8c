/* `hakmem policy`: whether files of policies are sound, in what two of them differ, and one policy of many. */
#ifndef HKR_POLICIES_H
#define HKR_POLICIES_H

#include <stddef.h>
#include <stdio.h>

/* arguments: "check" and files, "diff" and two files, or "merge" and files. 0 = sound; 1 = a file is none, or cannot be read or
 * written, with a line on stderr that says why; 2 = wrong arguments, nothing was said. */
int hkr_policy(char **arguments, size_t count, FILE *out);

#endif
