/* JSON as a stream: without an allocation, a lock or a locale, from a struct of the caller's, so that it may
 * be written in signal handlers and by copies of a process whose other threads hold locks for ever. Commas
 * and nesting are the writer's business:
 *
 *     hkc_json w;
 *     hkc_json_open_fd(&w, fd);
 *     hkc_json_object(&w, NULL);
 *     hkc_json_text(&w, "name", "main");
 *     hkc_json_array(&w, "sizes");
 *     hkc_json_size(&w, NULL, 64);
 *     hkc_json_end(&w);
 *     hkc_json_end(&w);
 *     int error = hkc_json_close(&w);
 */
#ifndef HKC_JSON_H
#define HKC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes all of the bytes. 0 = done, else an errno, after which it is not called again. */
typedef int hkc_json_put(void *to, const char *bytes, size_t n);

enum { HKC_JSON_DEPTH = 64, HKC_JSON_BUFFER = 4096 };

typedef struct hkc_json {
    hkc_json_put *put;
    void *to;
    int error; /* errno of the first failure; 0 = none */
    unsigned depth;
    uint64_t arrays, filled; /* a bit for each level: an array; has a member */
    size_t used;
    char buffer[HKC_JSON_BUFFER];
} hkc_json;

void hkc_json_open(hkc_json *w, hkc_json_put *put, void *to);
/* Into a descriptor, which stays the caller's. EINTR and short writes are dealt with. */
void hkc_json_open_fd(hkc_json *w, int fd);
/* What is left is put. Returns the errno of the first failure; 0 = all was written. */
int hkc_json_close(hkc_json *w);

/* A value each. key: the name of the member; NULL in an array and at the top. */
void hkc_json_object(hkc_json *w, const char *key);
void hkc_json_array(hkc_json *w, const char *key);
/* The end of the innermost object or array. */
void hkc_json_end(hkc_json *w);
/* Bytes that are no UTF-8 become U+FFFD. NULL is "". */
void hkc_json_text(hkc_json *w, const char *key, const char *text);
void hkc_json_text_n(hkc_json *w, const char *key, const char *text, size_t n);
void hkc_json_size(hkc_json *w, const char *key, uint64_t n);
void hkc_json_integer(hkc_json *w, const char *key, int64_t n);
/* Three digits behind the point, none for whole numbers and from 2^53 on; what is no number, and beyond 2^63,
 * is 0. */
void hkc_json_number(hkc_json *w, const char *key, double n);
void hkc_json_bool(hkc_json *w, const char *key, bool b);

#endif
