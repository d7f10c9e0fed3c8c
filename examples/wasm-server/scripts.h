/* Scripts that customers have stored, by name and version, as files: FOLDER/CUSTOMER/SCRIPT/VERSION.
 *
 * Each time that a script is stored it gets the next version; the latest SCRIPTS_VERSIONS stay. A version
 * never changes, and is there whole or not at all, whenever the server ends. */
#ifndef WASM_SERVER_SCRIPTS_H
#define WASM_SERVER_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct scripts scripts;
enum { SCRIPTS_VERSIONS = 10, SCRIPTS_OF_CUSTOMER = 100 };

/* NULL after a message on stderr. The folder must exist. */
scripts *scripts_open(const char *folder);
void scripts_close(scripts *all);

typedef enum stored { STORED, STORED_TOO_MANY, STORED_NOT } stored;
/* Names are good ones (customers_name_is_good). *version: that it got. STORED_NOT: the system would not. */
stored scripts_put(scripts *all, const char *customer, const char *name, const char *bytes, size_t size,
                   unsigned *version);
/* malloc, NULL = there is none, or no memory. version 0 = the latest; *version: which it is. */
char *scripts_get(scripts *all, const char *customer, const char *name, unsigned *version, size_t *size);
/* All versions. false = there is none. */
bool scripts_remove(scripts *all, const char *customer, const char *name);
/* A line "NAME VERSION" for the latest of each; malloc, NULL = no memory. */
char *scripts_list(scripts *all, const char *customer, size_t *size);

#endif
