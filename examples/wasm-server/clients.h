/* Clients: how many connections there are, and how long each may keep the server waiting.
 *
 * libmicrohttpd's own timeout begins anew with every byte. Here a request has one deadline until it has come
 * in, and its answer another until it has gone out; the connection is closed when it passes. A connection too
 * many, of an address or of all, takes the place of the one that has kept the server waiting longest: who
 * opens a hundred and sends nothing shuts out nobody, least of all at other addresses.
 *
 * Behind a proxy all connections are the proxy's, which says with each request whose it is. Then an address
 * may have so many requests under way, and one more is refused. */
#ifndef WASM_SERVER_CLIENTS_H
#define WASM_SERVER_CLIENTS_H

#include <microhttpd.h>
#include <stdbool.h>

typedef struct clients clients;

/* Of connections; deadline_ms for each request and for each answer. proxied: the other side is a proxy. NULL
 * = no memory or no thread. */
clients *clients_new(unsigned most, unsigned most_of_address, unsigned deadline_ms, bool proxied);
void clients_delete(clients *all);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the clients. */
void clients_notify(void *all, struct MHD_Connection *connection, void **context,
                    enum MHD_ConnectionNotificationCode what);

typedef enum client_state {
    CLIENT_SENDS, /* its request, or nothing yet */
    CLIENT_WAITS, /* for us: no deadline */
    CLIENT_TAKES, /* our answer */
} client_state;
/* A request begins. forwarded: the value of the last header X-Forwarded-For, NULL = there is none; only its
 * last address was written by the proxy. Returns 0, or the status to refuse the request with: 400 or 429. */
unsigned clients_request(clients *all, struct MHD_Connection *connection, const char *forwarded);
void clients_set(clients *all, struct MHD_Connection *connection, client_state state);

/* Waits until no request is under way, for that long at most. */
void clients_wait(clients *all, unsigned ms);

#endif
