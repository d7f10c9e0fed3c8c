/* What the command does with policies. */
#ifndef HKR_POLICY_H
#define HKR_POLICY_H

#include <stddef.h>

/* hakmem policy merge FILE...: one policy of many hosts' files. arguments: what follows `policy`; output: a
 * file, NULL = standard output. Returns the status of the command; what is wrong was said on stderr. */
int hkr_policy_command(char **arguments, size_t count, const char *output);

#endif
