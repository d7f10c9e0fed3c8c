/* HTTP: what requests there are, and their answers. For libmicrohttpd, which calls these functions. */
#ifndef WASM_SERVER_HTTP_H
#define WASM_SERVER_HTTP_H

#include "clients.h"
#include "customers.h"
#include "scripts.h"
#include "tokens.h"

typedef struct server {
    customers *customers;
    clients *clients; /* of the address where scripts run */
    tokens *tokens;   /* NULL = none are asked for */
    scripts *scripts; /* NULL = none are stored */
} server;

/* user: the server. The first two are for the address where scripts run, the others for that of the figures.
 */
enum MHD_Result http_handle(void *user, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *bytes, size_t *size,
                            void **state);
void http_end(void *user, struct MHD_Connection *connection, void **state,
              enum MHD_RequestTerminationCode why);
enum MHD_Result http_handle_stats(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes, size_t *size,
                                  void **state);
void http_end_stats(void *user, struct MHD_Connection *connection, void **state,
                    enum MHD_RequestTerminationCode why);
/* For MHD_OPTION_UNESCAPE_CALLBACK. */
size_t http_leave_encoded(void *user, struct MHD_Connection *connection, char *text);

#endif
