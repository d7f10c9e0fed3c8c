/* `hakmem policy merge`: one policy of many. */
#ifndef HKR_POLICY_MERGE_H
#define HKR_POLICY_MERGE_H

#include <hakmem/policy.h>

#include <stddef.h>
#include <stdio.h>

/* Loads the policy of a file. NULL = a line on stderr said why, behind `head`. */
hak_policy *hkr_load_policy(const char *file, const char *head);
/* Writes one policy of many hosts' files, by what they have seen. Returns what hkr_policy() does. */
int hkr_merge_policies(char **files, size_t count, FILE *out);

#endif
