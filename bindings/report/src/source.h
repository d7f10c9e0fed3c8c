/* Where a view comes from: a process that listens, its socket, or a file that is written again and again. */
#ifndef HKR_SOURCE_H
#define HKR_SOURCE_H

#include "report.h"

#include <sys/types.h>

typedef struct hkr_source {
    char path[4096]; /* of the file or the socket */
    bool is_socket;
    pid_t process; /* that has to be at the other end; 0 = any of this user's or of root */
} hkr_source;

/* what: the number of a process, or the name of a file or socket. false = error, of HKR_ERROR bytes. */
bool hkr_source_find(hkr_source *source, const char *what, char *error);
/* What it says now. NULL = error. A process has HKR_SOURCE_SECONDS for all of it. */
enum { HKR_SOURCE_SECONDS = 10 };
hkr_report *hkr_source_load(const hkr_source *source, char *error);

#endif
