/* wasm-server: runs scripts of customers, each script in a QuickJS of its own, each customer within limits.
 *
 *   POST /run/NAME   the body is JavaScript; the answer is its value
 *   GET  /stats      everything that is counted, in Prometheus' text format
 *   GET  /           a page that shows it live
 */
#define _GNU_SOURCE
#include "customers.h"

#include <hakmem/wasm_wasmtime.h>

#include <argp.h>
#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* page.html, as an array */
extern const unsigned char page[];
extern const size_t page_size;

enum { SCRIPT_MOST = 256 << 10 };

typedef struct settings {
    const char *guest, *address;
    unsigned port, connections, limit_ms;
    limits limits;
} settings;

/* The body of a request while it comes in. */
typedef struct upload {
    size_t size;
    bool too_large;
    char bytes[];
} upload;

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
                             size_t size, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return reply(connection, status, "text/plain; charset=utf-8", (char *)(uintptr_t)text, strlen(text),
                 MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result run(struct MHD_Connection *connection, customers *all, const char *name,
                           const upload *u)
{
    static const unsigned status[RUN_OUTCOMES] = {
        [RUN_OK] = MHD_HTTP_OK,
        [RUN_ERROR] = MHD_HTTP_UNPROCESSABLE_CONTENT,
        [RUN_TIME] = MHD_HTTP_REQUEST_TIMEOUT,
        [RUN_TRAP] = MHD_HTTP_UNPROCESSABLE_CONTENT,
        [RUN_REFUSED] = MHD_HTTP_SERVICE_UNAVAILABLE,
    };
    char *text;
    size_t length;
    outcome result = customers_run(all, name, u->bytes, u->size, &text, &length);
    if (!text) return MHD_NO;
    return reply(connection, status[result], "text/plain; charset=utf-8", text, length,
                 MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result report(struct MHD_Connection *connection, customers *all)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return MHD_NO;
    customers_report(all, to);
    fclose(to);
    return reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, size,
                 MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result receive(upload **u, const char *bytes, size_t *size)
{
    if ((*u)->size + *size > SCRIPT_MOST) {
        (*u)->too_large = true;
    } else {
        memcpy((*u)->bytes + (*u)->size, bytes, *size);
        (*u)->size += *size;
    }
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *bytes, size_t *size,
                              void **state)
{
    (void)version;
    upload *u = *state;
    if (!u) {
        u = malloc(sizeof *u + SCRIPT_MOST);
        if (!u) return MHD_NO;
        u->size = 0;
        u->too_large = false;
        *state = u;
        return MHD_YES;
    }
    if (*size > 0) return receive(&u, bytes, size);
    if (strcmp(method, "POST") == 0 && strncmp(url, "/run/", 5) == 0) {
        const char *name = url + 5;
        if (!customers_name_is_good(name, strlen(name))) {
            return reply_text(connection, MHD_HTTP_BAD_REQUEST, "a name has 1 to 32 of a-z, 0-9 and '-'\n");
        }
        if (u->too_large) {
            return reply_text(connection, MHD_HTTP_CONTENT_TOO_LARGE, "a script has at most 256 KiB\n");
        }
        return run(connection, user, name, u);
    }
    if (strcmp(method, "GET") == 0 && strcmp(url, "/stats") == 0) return report(connection, user);
    if (strcmp(method, "GET") == 0 && strcmp(url, "/") == 0) {
        return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", (char *)(uintptr_t)page, page_size,
                     MHD_RESPMEM_PERSISTENT);
    }
    return reply_text(connection, MHD_HTTP_NOT_FOUND, "there are POST /run/NAME, GET /stats and GET /\n");
}

static void end_request(void *user, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode why)
{
    (void)user, (void)connection, (void)why;
    free(*state);
    *state = NULL;
}

static unsigned number(const char *text, unsigned least, unsigned most, struct argp_state *state,
                       const char *what)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        argp_error(state, "%s must be a number from %u to %u", what, least, most);
    }
    return (unsigned)value;
}

static error_t option(int key, char *text, struct argp_state *state)
{
    settings *s = state->input;
    switch (key) {
    case 'a':
        s->address = text;
        return 0;
    case 'p':
        s->port = number(text, 0, 65535, state, "--port");
        return 0;
    case 'n':
        s->connections = number(text, 1, 10000, state, "--connections");
        return 0;
    case 'm':
        s->limits.linear_bytes = (size_t)number(text, 2, 4096, state, "--memory") << 20;
        return 0;
    case 'i':
        s->limits.instances = number(text, 1, 1000, state, "--instances");
        return 0;
    case 'c':
        s->limits.customers = number(text, 1, 10000, state, "--customers");
        return 0;
    case 'l':
        s->limit_ms = number(text, 1, 60000, state, "--time");
        return 0;
    case ARGP_KEY_ARG:
        if (s->guest) argp_error(state, "more than one guest");
        s->guest = text;
        return 0;
    case ARGP_KEY_END:
        if (!s->guest)
            argp_error(state, "the guest is missing: quickjs.wasm of the npm package quickjs-wasi");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"address", 'a', "ADDRESS", 0, "IPv4 address to listen on (127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "port, 0 = any that is free (8080)", 0},
    {"connections", 'n', "N", 0, "connections at once, a thread each (100)", 0},
    {"memory", 'm', "MIB", 0, "linear memory of a customer (16)", 0},
    {"instances", 'i', "N", 0, "instances of a customer at once (8)", 0},
    {"customers", 'c', "N", 0, "customers at most (100)", 0},
    {"time", 'l', "MS", 0, "time that a script has (200)", 0},
    {0},
};

static int serve(const settings *s, hak_wasm_host *host, engine *e)
{
    customers *all = customers_new(host, e, &s->limits);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    if (!all || inet_pton(AF_INET, s->address, &address.sin_addr) != 1) {
        fprintf(stderr, "wasm-server: '%s' is not an IPv4 address\n", s->address);
        return 1;
    }
    /* A thread each, so that nobody waits behind a tenant whose script takes long. */
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, handle, all,
        MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, s->connections,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
    if (!daemon) {
        fprintf(stderr, "wasm-server: cannot listen on %s:%u\n", s->address, s->port);
        customers_delete(all);
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("listening on http://%s:%u/\n", s->address, info->port);
    fflush(stdout);

    /* Blocked in all threads by main. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    int which;
    sigwait(&ends, &which);
    MHD_stop_daemon(daemon);
    customers_delete(all);
    return 0;
}

int main(int argc, char **argv)
{
    settings s = {NULL, "127.0.0.1", 8080, 100, 200, {100, 8, 16 << 20, 1 << 20}};
    const struct argp argp = {options,
                              option,
                              "QUICKJS.wasm",
                              "Runs scripts of customers, each in a QuickJS of its own, within limits.",
                              NULL,
                              NULL,
                              NULL};
    argp_parse(&argp, argc, argv, 0, NULL, &s);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);

    hak_wasm_host_options host_options = HAK_WASM_HOST_OPTIONS_INIT;
    host_options.bounds = HAK_WASM_GUARD;
    hak_wasm_host *host = hak_wasm_host_new(&host_options);
    if (!host || hak_wasmtime_hook_heap(host) != 0) {
        fprintf(stderr, "wasm-server: no memory for a host\n");
        return 1;
    }
    engine *e = engine_new(host, s.guest, s.limit_ms);
    int status = e ? serve(&s, host, e) : 1;
    if (e) engine_delete(e);
    /* The host stays: wasmtime's own blocks are in it as long as there is a process. */
    return status;
}
