/* The command `hakmem`. */
#include "common/file.h"
#include "policies.h"
#include "report.h"
#include "tokens.h"
#ifdef HKR_PUSH
#include "push.h"
#endif
#ifdef HKR_SERVE
#include "serve.h"
#endif
#ifndef HKR_ELSEWHERE
#include "top.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#ifdef _WIN32
#include <io.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef bool write_fn(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);

static const char usage[] =
    "usage: hakmem COMMAND [options] FILE...\n"
    "  report FILE...      labels, and the stacks that hold most, as text\n"
    "  diff BEFORE AFTER   what changed between two reports, growth first\n"
#ifdef HKR_HTML
    "  html FILE [BEFORE]  one page for a browser; with BEFORE also the difference\n"
#endif
#ifdef HKR_PPROF
    "  pprof FILE...       for `go tool pprof`, gzipped\n"
#endif
    "  folded FILE...      stacks as flamegraph.pl and inferno read them\n"
    "  speedscope FILE...  for speedscope\n"
    "  prometheus FILE...  contexts and labels in Prometheus' text format\n"
#ifndef HKR_ELSEWHERE
    "  attach PID          a view of what a process holds, refreshed; with -o, its report\n"
    "  top SOCKET|FILE     the same view of a socket, or of a file that changes\n"
#endif
    "  policy check FILE... whether policies are sound\n"
    "  policy diff A B     the statements in which two policies differ\n"
    "  policy merge FILE... one policy from the files of many hosts\n"
#ifdef HKR_SERVE
    "  serve [WHAT...]     over HTTP: a page, /metrics, /debug/pprof/heap; of all processes\n"
    "                      of this user that listen, or of some\n"
#endif
#ifdef HKR_PUSH
    "  push --otlp URL [WHAT...]  the numbers of prometheus to an OpenTelemetry collector\n"
#endif
    "options:\n"
    "  -o, --output FILE   write to FILE, not to standard output; the file is complete or absent\n"
    "  -b, --by WHAT       live (the default), peak or alloc\n"
    "  -n, --top N         rows of a table, 20 by default\n"
    "  -i, --interval SEC  of attach and top, 1 by default; of push, 60\n"
    "  -w, --windows       of attach and top: begin with what sites held when windows of the profile began\n"
    "  -l, --listen PLACE  of serve: PORT, HOST:PORT or PATH; 127.0.0.1:9464 by default\n"
    "  -t, --tokens N      the -falloc-token-max=N of the program, for the names of its types\n"
    "  -h, --help; -V, --version\n"
    "FILE is a report, \"hakmem-report/1\"; - is standard input.\n";

static bool write_text(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) fputc('\n', out);
        if (!hkr_write_text(out, reports[i], options)) return false;
    }
    return true;
}

static bool write_diff(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options)
{
    (void)count;
    return hkr_write_diff(out, reports[0], reports[1], options);
}

static const struct command {
    const char *name;
    write_fn *write;
    size_t least, most; /* files */
    bool stacks;        /* needs some */
    bool binary;        /* is not for a terminal */
    bool once;          /* takes one report of a process */
} commands[] = {
    {"report", write_text, 1, SIZE_MAX, false, false, false},
    {"diff", write_diff, 2, 2, false, false, false},
#ifdef HKR_HTML
    {"html", hkr_write_html, 1, 2, false, true, false},
#endif
#ifdef HKR_PPROF
    {"pprof", hkr_write_pprof, 1, SIZE_MAX, true, true, false},
#endif
    {"folded", hkr_write_folded, 1, SIZE_MAX, true, false, false},
    {"speedscope", hkr_write_speedscope, 1, SIZE_MAX, true, false, false},
    {"prometheus", hkr_write_prometheus, 1, SIZE_MAX, false, false, true},
};

static int say(const char *text)
{
    fputs(text, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int wrong(const char *what, const char *which)
{
    char text[200];
    hkr_clean(text, sizeof text, which);
    fprintf(stderr, "hakmem: %s '%s'; see hakmem --help\n", what, text);
    return 2;
}

static bool is_live(const char *name)
{
    return strcmp(name, "attach") == 0 || strcmp(name, "top") == 0;
}

/* Commands that are not of the table, because they do not write reports in another form. */
static bool is_other(const char *name)
{
    return is_live(name) || strcmp(name, "serve") == 0 || strcmp(name, "push") == 0 ||
           strcmp(name, "policy") == 0;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

/* Commands that this build does not have, and why. */
static const char *const lacks[][2] = {
#ifndef HKR_PPROF
    {"pprof", "protobuf-c or zlib was not there"},
#endif
#ifndef HKR_SERVE
    {"serve", "libmicrohttpd was not there"},
#endif
#ifndef HKR_PUSH
    {"push", "libcurl was not there"},
#endif
#ifndef HKR_HTML
    {"html", "the scripts of the page could not be had"},
#endif
    {NULL, NULL}};

static int no_command(const char *name)
{
    if (strcmp(name, "run") == 0 || strcmp(name, "env") == 0 || strcmp(name, "check") == 0 ||
        strcmp(name, "trim") == 0) {
        fprintf(stderr, "hakmem: no such command: '%s'; for Python programs there is python -m hakmem %s\n",
                name, name);
        return 2;
    }
#ifdef HKR_ELSEWHERE
    if (is_other(name)) {
        fprintf(stderr,
                "hakmem: there is no '%s' on " HKR_ELSEWHERE
                ": processes can be looked at while they run on Linux alone\n",
                name);
        return 2;
    }
#endif
    for (size_t i = 0; lacks[i][0]; i++)
        if (strcmp(name, lacks[i][0]) == 0) {
            fprintf(stderr, "hakmem: this build has no '%s': %s\n", name, lacks[i][1]);
            return 2;
        }
    return wrong("no such command:", name);
}

/* A command that there is not has options that there are not: that is told first. */
static int wrong_option(int argc, char **argv, const char *at)
{
    char option[3] = {'-', (char)optopt, '\0'};
    const bool is_short =
        optopt != 0 && !strchr("obnilwthV", optopt); /* else a long one with too much behind it */
    if (argc > 1 && argv[1][0] != '-' && !is_other(argv[1]) && !find(argv[1])) return no_command(argv[1]);
    return wrong("no such option:", is_short ? option : at);
}

static int wrong_count(const char *name, size_t count, size_t least, size_t most)
{
    if (is_live(name))
        fprintf(stderr, "hakmem: '%s' takes one process, socket or file, not %zu; see hakmem --help\n", name,
                count);
    else
        fprintf(stderr, "hakmem: '%s' takes %s%zu file%s, not %zu; see hakmem --help\n", name,
                most == least   ? ""
                : count < least ? "at least "
                                : "at most ",
                count < least ? least : most, (count < least ? least : most) == 1 ? "" : "s", count);
    return 2;
}

/* ---- Output -------------------------------------------------------------------------------------- */

typedef struct output {
    const char *name;
    hkc_file file;
    FILE *out;
} output;

static bool output_open(output *o, const char *name, const struct command *command)
{
    *o = (output){.name = name, .file.fd = -1, .out = stdout};
    if (!name) {
        if (!command->binary || !isatty(STDOUT_FILENO)) return true;
        fprintf(stderr, "hakmem: %s is not for a terminal: give -o FILE, or send it into a file with >\n",
                command->name);
        return false;
    }
    int error = hkc_file_open(&o->file, name, 0666);
#ifndef _WIN32
    /* A named pipe that nobody reads yet: nothing else waits here, so that it may be waited for. */
    if (error == ENXIO && (o->file.fd = open(name, O_WRONLY | O_CLOEXEC)) >= 0) error = 0;
#endif
    if (!error && !(o->out = fdopen(o->file.fd, "w"))) error = hkc_file_close(&o->file, errno);
    if (error) fprintf(stderr, "hakmem: %s: %s\n", name, strerror(error));
    return !error;
}

/* error: of what was written so far; 0 = none. Returns what went wrong. */
static int output_end(output *o, int error)
{
    if (fflush(o->out) != 0 && !error) error = errno;
    if (!o->name) return error;
    if (fclose(o->out) != 0 && !error) error = errno;
    o->file.fd = -1;
    return hkc_file_close(&o->file, error);
}

static bool output_close(output *o, bool ok)
{
    const int error = output_end(o, ok ? 0 : errno ? errno : EPROTO);
    if (error)
        fprintf(stderr, "hakmem: %s cannot be written: %s\n", o->name ? o->name : "the output",
                error == EPROTO ? "an error of the writer" : strerror(error));
    return !error;
}

/* ---- Commands ------------------------------------------------------------------------------------ */

/* What its readers would take for the same. */
static bool refuse_second(hkr_report *const *reports, char **files, size_t count)
{
    json_t *seen = json_object();
    bool ok = seen;
    for (size_t i = 0; i < count && ok; i++) {
        char process[32], file[200];
        snprintf(process, sizeof process, "%.0f", hkr_number(reports[i]->process, "pid"));
        ok = !json_object_get(seen, process) && json_object_set_new(seen, process, json_true()) == 0;
        hkr_clean(file, sizeof file, files[i]);
        if (!ok)
            fprintf(stderr, "hakmem: %s: a second report of process %s; one of each process is taken\n", file,
                    process);
    }
    json_decref(seen);
    return ok;
}

static int run(const struct command *command, char **files, size_t count, const char *name,
               const hkr_options *options)
{
    hkr_report **reports = calloc(count, sizeof *reports);
    char error[HKR_ERROR];
    int status = reports ? 0 : 1;
    for (size_t i = 0; i < count && status == 0; i++) {
        reports[i] = hkr_load(files[i], error);
        if (!reports[i]) {
            fprintf(stderr, "hakmem: %s\n", error);
            status = 1;
        }
    }
    if (status == 0 && command->stacks && hkr_stacks(reports, count) == 0) {
        fprintf(stderr,
                "hakmem: %s: there are no stacks in it: no profile was taken, or nothing was sampled\n",
                files[0]);
        status = 1;
    }
    if (status == 0 && command->once && !refuse_second(reports, files, count)) status = 1;
    output o;
    if (status == 0) {
        if (!output_open(&o, name, command)) {
            status = 1;
        } else {
            errno = 0;
            if (!output_close(&o, command->write(o.out, reports, count, options))) status = 1;
        }
    }
    for (size_t i = 0; reports && i < count; i++)
        hkr_free(reports[i]);
    free(reports);
    return status;
}

#ifndef HKR_ELSEWHERE
/* attach, top */
static int run_live(char **arguments, size_t count, const char *name, double interval,
                    const hkr_options *options)
{
    static const struct command snapshot = {.name = "attach"};
    if (count != 1) return wrong_count(arguments[0], count, 1, 1);
    if (!name) return hkr_top(arguments[1], interval, options);
    output o;
    if (!output_open(&o, name, &snapshot)) return 1;
    errno = 0;
    const int failed = hkr_snapshot(arguments[1], o.out);
    if (failed <= 0) return output_close(&o, failed == 0) ? 0 : 1;
    output_end(&o, ECANCELED);
    return failed;
}
#endif

static int run_policy(char **arguments, size_t count, const char *name)
{
    static const struct command policy = {.name = "policy"};
    output o;
    if (!output_open(&o, name, &policy)) return 1;
    errno = 0;
    const int status = hkr_policy(arguments, count, o.out);
    /* What is said of sound files stays beside what is wrong; a policy is whole or not there. */
    if (status == 0 || (status == 1 && strcmp(arguments[0], "check") == 0))
        return output_close(&o, true) ? status : 1;
    output_end(&o, ECANCELED);
    if (status == 1) return 1;
    return wrong("'policy' is followed by check, diff or merge, and files, not", count ? arguments[0] : "");
}

static bool parse_interval(const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0.1 && *seconds <= 3600;
}

static bool parse_by(const char *text, hkr_value *by)
{
    static const char *const names[HKR_VALUES] = {NULL, "alloc", NULL, "live", NULL, "peak"};
    for (int i = 0; i < HKR_VALUES; i++)
        if (names[i] && strcmp(names[i], text) == 0) {
            *by = (hkr_value)i;
            return true;
        }
    return false;
}

enum { OTLP = 256 }; /* an option without a letter */

int main(int argc, char **argv)
{
    static const struct option known[] = {{"output", required_argument, NULL, 'o'},
                                          {"by", required_argument, NULL, 'b'},
                                          {"top", required_argument, NULL, 'n'},
                                          {"interval", required_argument, NULL, 'i'},
                                          {"listen", required_argument, NULL, 'l'},
                                          {"windows", no_argument, NULL, 'w'},
                                          {"otlp", required_argument, NULL, OTLP},
                                          {"tokens", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {0}};
    hkr_options options = {.by = HKR_LIVE_BYTES, .top = 20};
    const char *output_name = NULL, *place = NULL, *url = NULL;
    double interval = 0;
    char *end;
    opterr = 0;
#ifdef _WIN32 /* lines end as they do in files that are written elsewhere */
    _setmode(STDOUT_FILENO, O_BINARY);
    _setmode(STDIN_FILENO, O_BINARY);
#endif
    for (int c; (c = getopt_long(argc, argv, ":o:b:n:i:l:t:whV", known, NULL)) != -1;) {
        switch (c) {
        case 'o':
            if (*optarg == '\0') return wrong("--output is the name of a file, not", optarg);
            output_name = optarg;
            break;
        case 'b':
            if (!parse_by(optarg, &options.by)) return wrong("--by is live, peak or alloc, not", optarg);
            break;
        case 'n':
            options.top = strtoul(optarg, &end, 10);
            if (end == optarg || *end || *optarg == '-' || options.top == 0)
                return wrong("--top is a number from 1 on, not", optarg);
            break;
        case 'i':
            if (!parse_interval(optarg, &interval))
                return wrong("--interval is 0.1 to 3600 seconds, not", optarg);
            break;
        case 'w':
            options.windows = true;
            break;
        case 'l':
            place = optarg;
            break;
        case 't':
            hkr_tokens_most = strtoull(optarg, &end, 10);
            if (end == optarg || *end || *optarg == '-' || hkr_tokens_most == 0)
                return wrong("--tokens is a number from 1 on, not", optarg);
            break;
        case OTLP:
            url = optarg;
            break;
        case 'h':
            return say(usage);
        case 'V':
            return say("hakmem " HKR_VERSION "\n");
        case ':':
            return wrong("a value is missing behind", argv[optind - 1]);
        default:
            return wrong_option(argc, argv, argv[optind - 1]);
        }
    }
    if (optind == argc) {
        fputs(usage, stderr);
        return 2;
    }
    const size_t count = (size_t)(argc - optind - 1);
    const char *name = argv[optind];
    const struct command *command = find(name);
    if (strcmp(name, "policy") == 0) return run_policy(argv + optind + 1, count, output_name);
    if (options.windows && (!is_live(name) || output_name))
        return wrong("--windows is an option of the views attach and top, not of",
                     output_name ? "--output" : name);
    if (place && strcmp(name, "serve") != 0) return wrong("--listen is an option of serve, not of", name);
#ifdef HKR_SERVE
    if (strcmp(name, "serve") == 0)
        return hkr_serve(place ? place : "127.0.0.1:9464", argv + optind + 1, count, &options);
#endif
    if (url && strcmp(name, "push") != 0) return wrong("--otlp is an option of push, not of", name);
#ifdef HKR_PUSH
    if (strcmp(name, "push") == 0) {
        if (url) return hkr_push(url, interval > 0 ? interval : 60, argv + optind + 1, count);
        fputs("hakmem: 'push' needs --otlp URL, of a collector; see hakmem --help\n", stderr);
        return 2;
    }
#endif
#ifndef HKR_ELSEWHERE
    if (is_live(name))
        return run_live(argv + optind, count, output_name, interval > 0 ? interval : 1, &options);
#endif
    if (strcmp(name, "help") == 0) return say(usage);
    if (!command) return no_command(name);
    if (count < command->least || count > command->most)
        return wrong_count(name, count, command->least, command->most);
    return run(command, argv + optind + 1, count, output_name, &options);
}
