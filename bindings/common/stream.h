/* Files of the program that are written to at its end, when it may have closed them, and opened others under
 * their numbers. */
#ifndef HKC_STREAM_H
#define HKC_STREAM_H

#include <sys/stat.h>

typedef struct hkc_stream {
    int fd; /* -1 = none */
    struct stat is;
} hkc_stream;

/* Notes what the descriptor is now; -1 = none. */
void hkc_stream_note(hkc_stream *stream, int fd);
/* The same of a duplicate, which is out of the way of programs that count on low numbers. */
void hkc_stream_keep(hkc_stream *stream, int fd);
/* To write to; -1 if it is another file by now. */
int hkc_stream_now(const hkc_stream *stream);

#endif
