/* toy [-m BYTES] [-l] [-r REPORT] FILE: runs a program; -m limits its memory, -l prints what is live at its
 * end, by label, -r writes it to a file for the command hakmem. */
#define _GNU_SOURCE
#include "toy.h"

#include <hakmem/report.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(void)
{
    fputs("usage: toy [-m BYTES] [-l] [-r REPORT] FILE\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    size_t limit = 0;
    hak_report_options print = HAK_REPORT_OPTIONS_INIT;
    const char *report = NULL;
    char *rest;
    for (int option; (option = getopt(argc, argv, "m:lr:")) != -1;) {
        if (option == 'l') {
            print.form = HAK_REPORT_TEXT;
        } else if (option == 'r') {
            report = optarg;
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
    hak_ctx *heap = toy_heap(vm);
    if (print.form == HAK_REPORT_TEXT) {
        hak_report_stream(stderr, &heap, 1, &print);
        fprintf(stderr, "%zu collections\n", toy_collections(vm));
    }
    const int failed = report ? hak_report_path(report, &heap, 1, NULL) : 0;
    if (failed) fprintf(stderr, "%s: %s\n", report, strerror(failed));
    toy_drop(vm);
    free(source);
    return error != NULL;
}
