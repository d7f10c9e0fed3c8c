/* A command that a script runs again and again: it reads some text, counts words, sorts them, and is over within
 * some hundredths of a second. argv[1]: how often. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 60000, BUCKETS = 4096 };

typedef struct word {
    struct word *next;
    unsigned count;
    char text[];
} word;

static int by_text(const void *a, const void *b)
{
    return strcmp((*(word *const *)a)->text, (*(word *const *)b)->text);
}

static int once(void)
{
    static word *table[BUCKETS];
    uint64_t state = 5;
    size_t found = 0, room = 0;
    word **all = NULL;
    for (int i = 0; i < WORDS; i++) {
        char text[40];
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const unsigned n = (unsigned)(state >> 33) % 20000;
        const int length = snprintf(text, sizeof text, "%u-%.*s", n, (int)(n % 17), "abcdefghijklmnopq");
        word *w = table[n % BUCKETS];
        while (w && strcmp(w->text, text) != 0)
            w = w->next;
        if (w) {
            w->count++;
            continue;
        }
        w = malloc(sizeof *w + (size_t)length + 1);
        memcpy(w->text, text, (size_t)length + 1);
        w->count = 1;
        w->next = table[n % BUCKETS];
        table[n % BUCKETS] = w;
        if (found == room) all = realloc(all, (room = room ? 2 * room : 64) * sizeof *all);
        all[found++] = w;
    }
    qsort(all, found, sizeof *all, by_text);
    return all[0]->count == 0;
}

int main(int argc, char **argv)
{
    const int runs = argc > 1 ? atoi(argv[1]) : 0;
    if (runs == 0) return once();
    for (int i = 0; i < runs; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0) {
            execl(argv[0], argv[0], (char *)NULL);
            _exit(1);
        }
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}
