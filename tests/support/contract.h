/* What a table of hak_os promises to the core, tried: hakmem.h has the promises, docs/internals/porting.md
 * says who needs which. In C, for any table on any system with threads of POSIX: a host that has a table of
 * its own compiles contract.c beside it. */
#ifndef HK_TEST_CONTRACT_H
#define HK_TEST_CONTRACT_H

#include <hakmem/hakmem.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CONTRACT_CLOCK_STANDS = 1 /* the clock is moved by hand: how fast it runs is not tried */ };

/* Called for each point, as "decommit". wrong: what does not hold; NULL = all of it holds. left_out: the
 * table does not have it, or refuses it here, as it may. */
typedef void contract_say(void *user, const char *point, const char *wrong, bool left_out);

/* Returns how many points do not hold. Takes some MiB, and a tenth of a second. */
unsigned contract_try(const hak_os *os, unsigned flags, contract_say *say, void *user);

#ifdef __cplusplus
}
#endif

#endif
