/* bench-<allocator> [--scale X] [--minutes M] ROW CASE | --list | --version */
#include "harness.h"
#include BENCH_ADAPTER

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bench_row *const all_rows[] = {
    rows_small,   rows_larson, rows_battle,  rows_big,  rows_fragmentation, rows_realloc,
    rows_latency, rows_ctx,    rows_startup, rows_soak, rows_threads,       rows_cold,
};

static void list(void)
{
    const char *sep = "";
    printf("[");
    for (size_t g = 0; g < sizeof all_rows / sizeof *all_rows; g++)
        for (const bench_row *r = all_rows[g]; r->name; r++)
            for (const bench_case *c = r->cases; c->name; c++, sep = ",\n ")
                printf("%s{\"row\": \"%s\", \"case\": \"%s\", \"curve\": %s, \"a\": %zu, "
                       "\"threads\": %zu}",
                       sep, r->name, c->name, c->curve ? "true" : "false", c->a,
                       all_rows[g] == rows_threads ? c->b : 0);
    printf("]\n");
}

static double positive(const char *option, const char *text)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (errno || *end || end == text || !isfinite(v) || v <= 0) {
        fprintf(stderr, "bench: %s %s: a number above 0 is wanted\n", option, text);
        exit(2);
    }
    return v;
}

static const bench_row *find_row(const char *name)
{
    for (size_t g = 0; g < sizeof all_rows / sizeof *all_rows; g++)
        for (const bench_row *r = all_rows[g]; r->name; r++)
            if (!strcmp(r->name, name)) return r;
    fprintf(stderr, "bench: no row %s; see --list\n", name);
    exit(2);
}

static const bench_case *find_case(const bench_row *row, const char *name)
{
    for (const bench_case *c = row->cases; c->name; c++)
        if (!strcmp(c->name, name)) return c;
    fprintf(stderr, "bench: row %s has no case %s; see --list\n", row->name, name);
    exit(2);
}

int main(int argc, char **argv)
{
    /* A static buffer: stdio must not be the first to allocate. */
    static char buffer[1 << 12];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    bench_settings settings = {1, 2};
    static const struct option options[] = {{"scale", required_argument, NULL, 's'},
                                            {"minutes", required_argument, NULL, 'm'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 's':
            settings.scale = positive("--scale", optarg);
            break;
        case 'm':
            settings.minutes = positive("--minutes", optarg);
            break;
        case 'l':
            list();
            return 0;
        case 'v':
            printf("%s\n", ba_version());
            return 0;
        default:
            return 2;
        }
    }
    if (argc - optind != 2) {
        fprintf(stderr, "bench: ROW and CASE are wanted; see --list\n");
        return 2;
    }
    const bench_row *row = find_row(argv[optind]);
    row->run(find_case(row, argv[optind + 1]), &settings);
    bench_print();
    return 0;
}
