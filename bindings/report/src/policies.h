/* `hakmem policy`: whether files of policies are sound, in what two of them differ, and one policy of many. */
#ifndef HKR_POLICIES_H
#define HKR_POLICIES_H

#include <hakmem/policy.h>

#include <stddef.h>
#include <stdio.h>

/* arguments: "check" and files, "diff" and two files, or "merge" and files. 0 = sound; 1 = a file is none, or cannot be read or
 * written, with a line on stderr that says why; 2 = wrong arguments, nothing was said. */
int hkr_policy(char **arguments, size_t count, FILE *out);
/* The policy of a file. NULL = a line on stderr said why, behind `head`. */
hak_policy *hkr_load_policy(const char *file, const char *head);
/* One policy of many hosts' files, by what they have seen. The same statuses. */
int hkr_merge_policies(char **files, size_t count, FILE *out);

#endif
