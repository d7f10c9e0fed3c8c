/* Policies in files, and policies and modes as the options of all bindings name them. */
#ifndef HKC_POLICY_H
#define HKC_POLICY_H

#include <hakmem/policy.h>

/* The policy in the file. NULL = `message` says why, with file and line. */
hak_policy *hkc_policy_load(const char *file, char *message, size_t size);
/* Writes it: the file is whole, or as it was. 0, or errno. comment: lines in front of it, each with # before
 * it; or NULL. */
int hkc_policy_save(const hak_policy *policy, const char *file, const char *comment);

/* The mode of this name; -1 = none, `message` says which there are. */
int hkc_mode_parse(const char *name, char *message, size_t size);

#endif
