/* What memory is worth, as the options of the bindings say it: a price, a word for one, or a budget; and what
 * a program begins with then. */
#ifndef HKC_MEMORY_H
#define HKC_MEMORY_H

#include <hakmem/policy.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct hkc_memory {
    unsigned price; /* of a MiB, in millionths of the program's CPU time; 0 = not said */
    size_t budget;  /* bytes that may be spent for speed; 0 = not said */
} hkc_memory;

/* From this price on a learner may give up speed for memory. */
enum { HKC_PRICE_DEAR_FROM = 200 };

/* Reads the value of `memory`: cheap, normal, dear, or a size. Returns NULL, or why it is none of these, to
 * follow the value in a message. */
const char *hkc_memory_parse(const char *text, hkc_memory *out);
/* Reads the value of `price`: 1 to 1000000. Returns NULL, or what was expected. */
const char *hkc_price_parse(const char *text, hkc_memory *out);
/* Returns the policy that a program begins with, on top of `policy`, whose reference it takes and which may
 * be NULL. learns: speed comes first, and the learner gives back what does not pay; else the price alone
 * chooses the mode. named: the user named a mode, which stays. NULL = as without, or no memory. */
hak_policy *hkc_memory_begin(hak_policy *policy, const hkc_memory *memory, bool learns, bool named);

#endif
