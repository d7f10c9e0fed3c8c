/* Names of types in the place of tokens, which the labels of a program are called by that was compiled with
 * -fsanitize=alloc-token. */
#ifndef HKR_TOKENS_H
#define HKR_TOKENS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The program's -falloc-token-max; 0 = none was given. */
extern uint64_t hkr_tokens_most;

/* Gives the labels "token ..." of a context, as it was read, the names of the types that have these tokens.
 * Types are read from files that the context's images name, if they still have the same build id, and from
 * what is installed of debug information for them. A label of which no type is found stays; one of several
 * types has the names of the first ones. What was read stays for the next report. True = something was
 * changed. */
bool hkr_tokens(json_t *context);

#endif
