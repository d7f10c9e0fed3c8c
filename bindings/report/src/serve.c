/* One thread of libmicrohttpd answers one request after the other; none of them is a call into a process that is
 * looked at but the question for its report. An answer is a file in memory, sent while others are served, so
 * that who reads slowly or never keeps nobody waiting. */
#include "serve.h"
#include "fleet.h"
#include "listen.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECTIONS = 64, /* at a time; further ones wait */
    PATIENCE = 30,    /* seconds for which a connection may stand still */
    WORDS = 8,        /* of a command, in the list of processes */
    WORD = 200
};

typedef struct server {
    hkr_fleet fleet;
    hkr_listener listener;
    hkr_options options;
    struct MHD_Daemon *daemon;
} server;

/* What is asked for: the reports, of one process or of all, in one of these forms. */
typedef struct question {
    server *server;
    struct MHD_Connection *connection;
    hkr_report *const *reports;
    size_t count;
    bool open_metrics;
} question;

/* ---- Answers -------------------------------------------------------------------------------------- */

static enum MHD_Result send_response(const question *q, unsigned status, struct MHD_Response *response,
                                     const char *type)
{
    if (!response) return MHD_NO; /* closes the connection */
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
    const enum MHD_Result done = MHD_queue_response(q->connection, status, response);
    MHD_destroy_response(response);
    return done;
}

/* The answer is one line. */
static enum MHD_Result refuse(const question *q, unsigned status, const char *line)
{
    char text[HKR_ERROR + 1];
    const int n = snprintf(text, sizeof text, "%.*s\n", HKR_ERROR - 1, line);
    return send_response(q, status, MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY),
                         "text/plain; charset=utf-8");
}

typedef bool write_fn(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options);

/* Whether all of it is there. */
static bool write_all(FILE *out, write_fn *write, const question *q, const hkr_options *options)
{
    const bool ok = write(out, q->reports, q->count, options);
    return fflush(out) == 0 && ok;
}

static enum MHD_Result answer(const question *q, write_fn *write, const hkr_options *options,
                              const char *type)
{
    const int fd = memfd_create("hakmem answer", MFD_CLOEXEC), kept = fd >= 0 ? dup(fd) : -1;
    FILE *out = kept >= 0 ? fdopen(fd, "wb") : NULL;
    bool ok = out && write_all(out, write, q, options);
    if (out) ok = fclose(out) == 0 && ok;
    else if (fd >= 0) close(fd);
    struct stat is;
    if (ok && fstat(kept, &is) == 0)
        return send_response(q, MHD_HTTP_OK, MHD_create_response_from_fd((size_t)is.st_size, kept), type);
    if (kept >= 0) close(kept);
    return refuse(q, MHD_HTTP_INTERNAL_SERVER_ERROR, "the answer cannot be written: no memory");
}

/* ---- What can be asked for ------------------------------------------------------------------------ */

static bool write_report(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options)
{
    (void)count, (void)options;
    return fwrite(reports[0]->text, 1, reports[0]->size, out) == reports[0]->size;
}

static void put_html(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", out);
        else if (*text == '&') fputs("&amp;", out);
        else fputc(*text, out);
    }
}

static void put_command(FILE *out, const hkr_report *r)
{
    char text[WORDS * WORD];
    hkr_command(text, sizeof text, r, WORDS, WORD);
    put_html(out, *text ? text : "(not known)");
}

/* The list of processes. Commands come last, so that long ones push no figure off a narrow screen. */
static bool write_list(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options)
{
    (void)options;
    fputs(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>hakmem</title><style>body{font:16px system-ui,sans-serif;"
        "margin:1rem}td,th{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top;white-space:nowrap}"
        "td:last-child{white-space:normal;overflow-wrap:anywhere}</style>"
        "<h1>Processes</h1><table><tr><th>process<th>live<th>resident<th>command",
        out);
    for (size_t i = 0; i < count; i++) {
        const hkr_report *r = reports[i];
        char bytes[32];
        const double live = hkr_total(r, "live_bytes");
        const double process = hkr_number(r->process, "pid"),
                     resident = hkr_number(r->memory, "resident_bytes");
        fprintf(out, "<tr><td><a href=\"/%.0f/\">%.0f</a><td>%s<td>", process, process,
                hkr_bytes(bytes, live, false));
        fprintf(out, "%s<td>", resident > 0 ? hkr_bytes(bytes, resident, false) : "?");
        put_command(out, r);
    }
    fputs("</table><p><a href=\"/metrics\">metrics</a></html>\n", out);
    return !ferror(out);
}

static bool write_page(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *options)
{
#ifdef HKR_HTML
    return hkr_write_html(out, reports, count, options);
#else
    (void)count;
    return hkr_write_text(out, reports[0], options);
#endif
}

#ifdef HKR_HTML
static const char page_type[] = "text/html; charset=utf-8";
#else
static const char page_type[] = "text/plain; charset=utf-8";
#endif

static enum MHD_Result answer_profile(const question *q, hkr_value by)
{
    if (hkr_stacks(q->reports, q->count) == 0)
        return refuse(q, MHD_HTTP_NOT_FOUND,
                      "there are no stacks: no profile was taken, or nothing was sampled");
    const hkr_options options = {.by = by, .top = q->server->options.top};
    return answer(q, hkr_write_pprof, &options, "application/octet-stream");
}

static enum MHD_Result answer_metrics(const question *q)
{
    hkr_options options = q->server->options;
    options.open_metrics = q->open_metrics;
    return answer(q, hkr_write_prometheus, &options,
                  q->open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                  : "text/plain; version=0.0.4; charset=utf-8");
}

static enum MHD_Result answer_path(const question *q, const char *path)
{
    const hkr_options *options = &q->server->options;
    if (strcmp(path, "/metrics") == 0) return answer_metrics(q);
    if (strcmp(path, "/debug/pprof/heap") == 0) return answer_profile(q, HKR_LIVE_BYTES);
    if (strcmp(path, "/debug/pprof/allocs") == 0) return answer_profile(q, HKR_ALLOC_BYTES);
    if (strcmp(path, "/") == 0)
        return q->count == 1 ? answer(q, write_page, options, page_type)
                             : answer(q, write_list, options, "text/html; charset=utf-8");
    if (strcmp(path, "/report.json") == 0)
        return q->count == 1
                   ? answer(q, write_report, options, "application/json")
                   : refuse(q, MHD_HTTP_NOT_FOUND, "there are several: ask for /PROCESS/report.json");
    return refuse(q, MHD_HTTP_NOT_FOUND,
                  "there are /, /metrics, /debug/pprof/heap, /debug/pprof/allocs and /report.json, each also "
                  "behind /PROCESS");
}

/* Takes the number of a process off the path, and its report alone into the question. false = no such one. */
static bool pick(question *q, const char **path)
{
    char *end;
    if ((*path)[0] != '/' || (*path)[1] < '0' || (*path)[1] > '9') return true;
    const double process = (double)strtoull(*path + 1, &end, 10);
    if (*end != '/') return false;
    for (size_t i = 0; i < q->count; i++)
        if (hkr_number(q->reports[i]->process, "pid") == process) {
            q->reports += i;
            q->count = 1;
            *path = end;
            return true;
        }
    return false;
}

/* ---- Requests ------------------------------------------------------------------------------------- */

/* Where browsers reach the server by a name of this machine alone, another name in the request is that of a page
 * that had its name point here (DNS rebinding), and gets nothing. */
static bool is_asked_by_name(const question *q)
{
    if (!q->server->listener.network || !q->server->listener.local) return true;
    const char *host = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Host");
    if (!host) return false;
    const char *colon = strrchr(host, ':');
    const size_t n =
        colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? (size_t)(colon - host) : strlen(host);
    return (n == 9 && strncasecmp(host, "localhost", n) == 0) || (n == 5 && strncmp(host, "[::1]", n) == 0) ||
           (n >= 7 && n <= 15 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **state)
{
    static const char seen;
    server *s = user;
    (void)version, (void)data;
    if (!*state) { /* the head alone; nothing that follows is of interest */
        *state = (void *)(uintptr_t)&seen;
        return MHD_YES;
    }
    if (*size > 0) {
        *size = 0;
        return MHD_YES;
    }
    question q = {.server = s, .connection = connection};
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(&q, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
    if (!is_asked_by_name(&q)) return refuse(&q, MHD_HTTP_FORBIDDEN, "ask for localhost or 127.0.0.1");
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    q.open_metrics = accept && strstr(accept, "application/openmetrics-text");
    hkr_fleet_load(&s->fleet);
    q.reports = s->fleet.reports;
    q.count = s->fleet.count;
    if (q.count == 0) return refuse(&q, MHD_HTTP_SERVICE_UNAVAILABLE, s->fleet.error);
    if (!pick(&q, &path)) return refuse(&q, MHD_HTTP_NOT_FOUND, "there is no such process");
    return answer_path(&q, path);
}

/* ---- The server ----------------------------------------------------------------------------------- */

static bool begin(server *s)
{
    s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, on_request, s,
                                 MHD_OPTION_LISTEN_SOCKET, s->listener.fd, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PATIENCE,
                                 MHD_OPTION_END);
    return s->daemon;
}

int hkr_serve(const char *place, char *const *named, size_t count, const hkr_options *options)
{
    char error[HKR_ERROR];
    sigset_t ends;
    int number;
    server s = {.options = *options};
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* the thread of the server inherits this */
    signal(SIGPIPE, SIG_IGN);
    if (!hkr_fleet_begin(&s.fleet, named, count)) return 1;
    if (!hkr_listen(&s.listener, place, error)) {
        fprintf(stderr, "hakmem: %s\n", error);
        hkr_fleet_end(&s.fleet);
        return 1;
    }
    if (!begin(&s)) {
        fprintf(stderr, "hakmem: the server cannot start: %s\n", strerror(errno));
        close(s.listener.fd);
    } else {
        fprintf(stderr, "hakmem: at %s%s\n", s.listener.text,
                s.listener.local ? "" : ", where anybody who reaches this machine can read it");
        sigwait(&ends, &number);
        MHD_stop_daemon(s.daemon);
    }
    hkr_listen_end(&s.listener);
    hkr_fleet_end(&s.fleet);
    return s.daemon ? 0 : 1;
}
