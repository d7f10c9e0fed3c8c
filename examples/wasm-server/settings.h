/* What the server is told when it starts. */
#ifndef WASM_SERVER_SETTINGS_H
#define WASM_SERVER_SETTINGS_H

#include "customers.h"

#include <netinet/in.h>

typedef struct settings {
    const char *guest, *address;
    const char *stats;   /* [ADDRESS:]PORT; "none" = nobody may ask */
    const char *live;    /* where who looks at the server finds it; NULL = nowhere */
    const char *tokens;  /* file; NULL = who reaches the server may run scripts for any customer */
    const char *scripts; /* folder; NULL = scripts are not stored */
    const char *code;    /* folder; NULL = the guest is compiled at each start */
    bool forwarded;      /* the other side is a proxy */
    unsigned port, connections, connections_of_address, deadline_ms, limit_ms;
    limits limits;
} settings;

/* Ends the process after a message where the arguments are wrong. */
void settings_read(settings *s, int argc, char **argv);

/* Addresses; false after a message on stderr. */
bool settings_address(const char *address, unsigned port, struct sockaddr_in *out);
bool settings_stats(const char *text, char address[INET_ADDRSTRLEN], struct sockaddr_in *out);

#endif
