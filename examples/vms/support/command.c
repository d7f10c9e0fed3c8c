#define _GNU_SOURCE /* getopt */
#include "command.h"

#include "common/report.h"
#include "common/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool usage(const char *program)
{
    fprintf(stderr, "usage: %s [-a own|plain|labels] [-m SIZE] [-l] FILE\n", program);
    return false;
}

static bool read_text(command *c)
{
    FILE *file = fopen(c->file, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size >= 0) c->text = calloc((size_t)size + 1, 1);
    if (c->text) rewind(file);
    c->length = (size_t)size;
    bool ok = c->text && fread(c->text, 1, c->length, file) == c->length;
    if (!ok) perror(c->file);
    if (file) fclose(file);
    return ok;
}

bool command_read(command *c, int argc, char **argv)
{
    *c = (command){.labels = true};
    for (int option; (option = getopt(argc, argv, "a:m:l")) != -1;) {
        if (option == 'l') c->report = true;
        else if (option == 'm' && !hkc_size_parse(optarg, &c->limit) && c->limit) continue;
        else if (option == 'a' && !strcmp(optarg, "own")) c->own = true;
        else if (option == 'a' && !strcmp(optarg, "plain")) c->labels = false;
        else if (option != 'a' || strcmp(optarg, "labels")) return usage(argv[0]);
    }
    if (optind + 1 != argc || (c->own && c->limit)) return usage(argv[0]);
    c->file = argv[optind];
    return read_text(c);
}

static void put(void *to, const char *text, size_t n)
{
    fwrite(text, 1, n, to);
}

void command_report(const command *c, const hak_ctx *heap)
{
    if (!c->report) return;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (heap) {
        hak_label_info labels[HAK_LABELS_MAX + 1];
        hkc_report report = {.name = "", .note = "", .stats = {.size = sizeof(hak_stats)}, .labels = labels};
        hak_ctx_stats(heap, &report.stats);
        report.label_count = hak_labels_stats(heap, labels, HAK_LABELS_MAX + 1);
        if (!c->labels) report.label_count = 0;
        hkc_report_put(&report, put, stderr);
    }
    fprintf(stderr, "the process: %ld KiB resident at most\n", used.ru_maxrss);
}
