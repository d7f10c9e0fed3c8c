/* A socket that listens, at a place that a person named. */
#ifndef HKR_LISTEN_H
#define HKR_LISTEN_H

#include "report.h"

typedef struct hkr_listener {
    int fd;         /* -1 = none */
    bool local;     /* only processes of this machine reach the socket */
    bool network;   /* a browser can reach the socket: it is none of a file */
    char text[300]; /* "http://127.0.0.1:9464/", or the path of the socket's file */
} hkr_listener;

/* Listens at "PORT" (of 127.0.0.1), "HOST:PORT", "[HOST]:PORT", or a path with a slash, whose file this user
 * alone may open. A file that a process left behind is replaced. false = `error` says why, in a line. */
bool hkr_listen(hkr_listener *listener, const char *place, char *error);
/* Removes the socket's file. The socket itself belongs to whoever took the number. */
void hkr_listen_end(hkr_listener *listener);

#endif
