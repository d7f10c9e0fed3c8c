/* Streams of the program that are written to at its end, when the program has closed them by then. */
#ifndef HKS_PRELOAD_STREAM_H
#define HKS_PRELOAD_STREAM_H

#include <sys/stat.h>

/* A duplicate of a descriptor, out of the way of programs that count on low numbers. */
typedef struct hks_stream {
    int fd; /* -1 = none */
    struct stat is;
} hks_stream;

/* fd: of the program; -1 = none. */
void hks_stream_keep(hks_stream *stream, int fd);
/* To write to; -1 if it is another file by now: a program may have closed the number and opened another. */
int hks_stream_now(const hks_stream *stream);

#endif
