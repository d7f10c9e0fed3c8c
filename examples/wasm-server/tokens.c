#define _GNU_SOURCE
#include "tokens.h"

#include "customers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TOKEN_LEAST = 16, TOKEN_MOST = 256 };

typedef struct entry {
    char name[33], token[TOKEN_MOST + 1]; /* zeros behind both */
} entry;

struct tokens {
    entry *list; /* sorted by name */
    unsigned count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* NULL = fine, or the line is skipped. */
static const char *add_line(tokens *all, char *line)
{
    char *rest, *name = strtok_r(line, " \t\r\n", &rest);
    if (!name || *name == '#') return NULL;
    char *token = strtok_r(NULL, " \t\r\n", &rest);
    if (!token || strtok_r(NULL, " \t\r\n", &rest)) return "is not NAME TOKEN";
    if (!customers_name_is_good(name)) return "has a name that is not 1 to 32 of a-z, 0-9 and '-'";
    const size_t length = strlen(token);
    if (length < TOKEN_LEAST || length > TOKEN_MOST)
        return "has a token of less than 16 or more than 256 characters";
    entry *more = realloc(all->list, (all->count + 1) * sizeof *more);
    if (!more) return "has no memory left for it";
    all->list = more;
    more[all->count] = (entry){0};
    memcpy(more[all->count].name, name, strlen(name));
    memcpy(more[all->count++].token, token, length);
    return NULL;
}

tokens *tokens_read(const char *path)
{
    tokens *all = calloc(1, sizeof *all);
    FILE *f = all ? fopen(path, "r") : NULL;
    if (!f) {
        fprintf(stderr, "wasm-server: cannot read the tokens in %s\n", path);
        free(all);
        return NULL;
    }
    char *line = NULL;
    size_t room = 0;
    const char *wrong = NULL;
    unsigned number = 0;
    while (!wrong && getline(&line, &room, f) >= 0) {
        number++;
        wrong = add_line(all, line);
    }
    if (line) explicit_bzero(line, room);
    free(line);
    fclose(f);
    if (wrong) fprintf(stderr, "wasm-server: line %u of %s %s\n", number, path, wrong);
    else if (all->count == 0) fprintf(stderr, "wasm-server: there are no tokens in %s\n", path);
    if (wrong || all->count == 0) {
        tokens_delete(all);
        return NULL;
    }
    qsort(all->list, all->count, sizeof *all->list, by_name);
    return all;
}

void tokens_delete(tokens *all)
{
    if (!all) return;
    if (all->list) explicit_bzero(all->list, all->count * sizeof *all->list);
    free(all->list);
    free(all);
}

unsigned tokens_customers(const tokens *all)
{
    unsigned n = 0;
    for (unsigned i = 0; i < all->count; i++)
        n += i == 0 || strcmp(all->list[i - 1].name, all->list[i].name) != 0;
    return n;
}

static bool same(const char a[TOKEN_MOST + 1], const char b[TOKEN_MOST + 1])
{
    unsigned char different = 0;
    for (unsigned i = 0; i <= TOKEN_MOST; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

bool tokens_allow(const tokens *all, const char *name, const char *header)
{
    static const char scheme[] = "Bearer ";
    if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0) return false;
    header += sizeof scheme - 1;
    header += strspn(header, " ");
    char token[TOKEN_MOST + 1] = {0};
    const size_t length = strlen(header);
    if (length < TOKEN_LEAST || length > TOKEN_MOST) return false;
    memcpy(token, header, length);
    bool allowed = false;
    for (unsigned i = 0; i < all->count; i++) {
        const entry *e = &all->list[i];
        if (strcmp(e->name, name) == 0) allowed |= same(e->token, token);
    }
    return allowed;
}
