/* toy [-m BYTES] [-l] FILE: runs a program; -m limits its memory, -l prints what is live at its end, by
 * label. */
#define _GNU_SOURCE
#include "toy.h"

#include <stdlib.h>
#include <unistd.h>

enum { LABELS = 8 };

static void print_labels(const toy *vm)
{
    hak_label_info info[LABELS];
    int count = hak_labels_stats(toy_heap(vm), info, LABELS);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%-10s %8zu blocks %10zu bytes\n", i ? info[i].name : "(machine)",
                info[i].live_blocks, info[i].live_bytes);
    fprintf(stderr, "%zu collections\n", toy_collections(vm));
}

static int usage(void)
{
    fputs("usage: toy [-m BYTES] [-l] FILE\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    size_t limit = 0;
    bool labels = false;
    char *rest;
    for (int option; (option = getopt(argc, argv, "m:l")) != -1;) {
        if (option == 'l') {
            labels = true;
        } else if (option == 'm') {
            limit = strtoull(optarg, &rest, 10);
            if (*rest || !limit) return usage();
        } else {
            return usage();
        }
    }
    if (optind + 1 != argc) return usage();
    FILE *file = fopen(argv[optind], "r");
    char *source = NULL;
    size_t room = 0;
    if (!file || getdelim(&source, &room, 0, file) < 0) {
        perror(argv[optind]);
        return 2;
    }
    fclose(file);
    toy *vm = toy_new(NULL, limit, stdout);
    if (!vm) {
        fprintf(stderr, "toy: no memory for a machine\n");
        return 1;
    }
    const char *error = toy_run(vm, source);
    if (error) fprintf(stderr, "%s: %s\n", argv[optind], error);
    if (labels) print_labels(vm);
    toy_drop(vm);
    free(source);
    return error != NULL;
}
