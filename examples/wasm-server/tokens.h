/* Tokens: who may run scripts for which customer.
 *
 * A file has a line "NAME TOKEN" for each; a customer may have several, so that one can be replaced while the
 * other serves. Blank lines and lines that begin with '#' are skipped. */
#ifndef WASM_SERVER_TOKENS_H
#define WASM_SERVER_TOKENS_H

#include <stdbool.h>

typedef struct tokens tokens;

/* NULL after a message on stderr. */
tokens *tokens_read(const char *path);
void tokens_delete(tokens *all);
/* Customers with a token. */
unsigned tokens_customers(const tokens *all);
/* Whether the value of a request's header Authorization is "Bearer" and a token of the customer. The time
 * that it takes tells nothing of what the tokens are. header NULL = there is none. */
bool tokens_allow(const tokens *all, const char *name, const char *header);

#endif
