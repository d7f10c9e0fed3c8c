#define _GNU_SOURCE /* getopt */
#include "command.h"

#include "common/size.h"

#include <hakmem/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool usage(const char *program)
{
    fprintf(stderr, "usage: %s [-a own|plain|labels] [-m SIZE] [-l] [-r REPORT] FILE\n", program);
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
    for (int option; (option = getopt(argc, argv, "a:m:lr:")) != -1;) {
        if (option == 'l') c->print = true;
        else if (option == 'r') c->report = optarg;
        else if (option == 'm' && !hkc_size_parse(optarg, &c->limit) && c->limit) continue;
        else if (option == 'a' && !strcmp(optarg, "own")) c->own = true;
        else if (option == 'a' && !strcmp(optarg, "plain")) c->labels = false;
        else if (option != 'a' || strcmp(optarg, "labels")) return usage(argv[0]);
    }
    if (optind + 1 != argc || (c->own && (c->limit || c->report))) return usage(argv[0]);
    c->file = argv[optind];
    return read_text(c);
}

void command_report(const command *c, hak_ctx *heap)
{
    hak_report_options report = HAK_REPORT_OPTIONS_INIT;
    const int error = heap && c->report ? hak_report_path(c->report, &heap, 1, &report) : 0;
    if (error) fprintf(stderr, "%s: %s\n", c->report, strerror(error));
    if (!c->print) return;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    report.form = HAK_REPORT_TEXT;
    if (heap) hak_report_stream(stderr, &heap, 1, &report);
    fprintf(stderr, "the process: %ld KiB resident at most\n", used.ru_maxrss);
}
