/* A pipeline of documents: each is read into a tree of objects, arrays and strings, changed, written into a buffer
 * that grows, and forgotten. argv[1]: documents. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct value {
    char *text; /* of a leaf */
    struct value **items;
    size_t count, room;
} value;

typedef struct buffer {
    char *bytes;
    size_t used, room;
} buffer;

static uint64_t state = 11;

static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % n;
}

static void put(buffer *b, const char *text, size_t n)
{
    if (b->used + n > b->room) b->bytes = realloc(b->bytes, b->room = 2 * (b->used + n));
    memcpy(b->bytes + b->used, text, n);
    b->used += n;
}

static value *read_value(int depth)
{
    value *v = calloc(1, sizeof *v);
    if (depth == 0 || below(3) == 0) {
        const size_t n = 1 + below(below(20) == 0 ? 3000 : 40);
        v->text = malloc(n + 1);
        memset(v->text, 'x', n);
        v->text[n] = '\0';
        return v;
    }
    for (size_t n = below(12); n > 0; n--) {
        if (v->count == v->room)
            v->items = realloc(v->items, (v->room = v->room ? 2 * v->room : 4) * sizeof *v->items);
        v->items[v->count++] = read_value(depth - 1);
    }
    return v;
}

static void write_value(buffer *b, const value *v)
{
    put(b, "[", 1);
    if (v->text) put(b, v->text, strlen(v->text));
    for (size_t i = 0; i < v->count; i++)
        write_value(b, v->items[i]);
    put(b, "]", 1);
}

static void forget(value *v)
{
    for (size_t i = 0; i < v->count; i++)
        forget(v->items[i]);
    free(v->items);
    free(v->text);
    free(v);
}

int main(int argc, char **argv)
{
    size_t written = 0;
    for (int i = argc > 1 ? atoi(argv[1]) : 400; i > 0; i--) {
        buffer out = {0};
        value *document = read_value(7);
        write_value(&out, document);
        written += out.used;
        forget(document);
        free(out.bytes);
    }
    return written == 0;
}
