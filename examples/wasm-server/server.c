/* wasm-server: runs scripts of customers, each script in a QuickJS of its own, each customer within limits.
 *
 *   POST /run/NAME   the body is JavaScript; the answer is its value
 *
 * and at another address, for who runs the server, not for customers:
 *
 *   GET  /stats      everything that is counted, in Prometheus' text format
 *   GET  /           a page that shows it live
 */
#define _GNU_SOURCE
#include "clients.h"
#include "customers.h"

#include <hakmem/wasm_wasmtime.h>

#include <argp.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* page.html, as an array */
extern const unsigned char page[];
extern const size_t page_size;

enum {
    SCRIPT_MOST = 256 << 10,
    BODY_MOST = 1 << 20,    /* is read to its end before it is refused, as most clients want it */
    CONNECTIONS_CUT = 64,   /* may wait for their threads to end, beside those that are allowed */
    DESCRIPTORS_OTHER = 64, /* that are not clients' connections */
    STATS_CONNECTIONS = 16,
    STATS_TIMEOUT_S = 10,
    GRACE_MS = 2000,   /* for scripts that run when the server ends */
    ANSWER_MS = 10000, /* for clients to take the last answers */
};

typedef struct settings {
    const char *guest, *address;
    const char *stats; /* [ADDRESS:]PORT; "none" = nobody may ask */
    const char *live;  /* where who looks at the server finds it; NULL = nowhere */
    unsigned port, connections, connections_of_address, deadline_ms, limit_ms;
    limits limits;
} settings;

typedef struct server {
    customers *customers;
    clients *clients; /* of the address where scripts run */
} server;

typedef enum route { ROUTE_RUN, ROUTE_STATS, ROUTE_PAGE, ROUTE_NONE, ROUTE_NO_STATS } route;

typedef struct request {
    route route;
    unsigned status; /* that it is refused with; 0 = it is not */
    size_t size;     /* of the body so far */
    size_t room;     /* for what of the body is kept */
    char body[];
} request;

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
                             size_t size, enum MHD_ResponseMemoryMode mode, const char *allow)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    /* What a script answers is not to be taken for a page. */
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (allow) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const request *r)
{
    const char *text = r->route == ROUTE_NO_STATS ? "there is POST /run/NAME\n"
                                                  : "there are GET /stats and GET /\n",
               *allow = NULL;
    if (r->status == MHD_HTTP_BAD_REQUEST) text = "a name is 1 to 32 of a-z, 0-9 and '-', not encoded\n";
    if (r->status == MHD_HTTP_CONTENT_TOO_LARGE) text = "too large: a script has at most 256 KiB\n";
    if (r->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        allow = r->route == ROUTE_RUN ? "POST" : "GET, HEAD";
        text = r->route == ROUTE_RUN ? "POST only\n" : "GET and HEAD only\n";
    }
    return reply(connection, r->status, "text/plain; charset=utf-8", (char *)(uintptr_t)text, strlen(text),
                 MHD_RESPMEM_PERSISTENT, allow);
}

static enum MHD_Result run(struct MHD_Connection *connection, server *s, const char *name, const request *r)
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
    outcome result = customers_run(s->customers, name, r->body, r->size, &text, &length);
    if (!text) return MHD_NO;
    return reply(connection, status[result], "text/plain; charset=utf-8", text, length, MHD_RESPMEM_MUST_FREE,
                 NULL);
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
                 MHD_RESPMEM_MUST_FREE, NULL);
}

/* Customers see no figures of each other. */
static route find_route(const char *url, bool stats)
{
    if (!stats) return strncmp(url, "/run/", 5) == 0 ? ROUTE_RUN : ROUTE_NO_STATS;
    if (strcmp(url, "/stats") == 0) return ROUTE_STATS;
    return strcmp(url, "/") == 0 ? ROUTE_PAGE : ROUTE_NONE;
}

/* The headers are here, the body is not. length: of the body, as far as the client says. */
static unsigned judge(route to, const char *url, const char *method, unsigned long long length)
{
    bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (to == ROUTE_NONE || to == ROUTE_NO_STATS) return MHD_HTTP_NOT_FOUND;
    if (to != ROUTE_RUN) return reads ? 0 : MHD_HTTP_METHOD_NOT_ALLOWED;
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0) return MHD_HTTP_METHOD_NOT_ALLOWED;
    if (!customers_name_is_good(url + 5)) return MHD_HTTP_BAD_REQUEST;
    return length > SCRIPT_MOST ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}

static enum MHD_Result begin_request(struct MHD_Connection *connection, const char *url, const char *method,
                                     bool stats, request **made)
{
    const char *header =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool chunked =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    unsigned long long length = header && !chunked ? strtoull(header, NULL, 10) : 0;
    route to = find_route(url, stats);
    unsigned status = judge(to, url, method, length);
    if (!status && length > BODY_MOST) status = MHD_HTTP_CONTENT_TOO_LARGE;
    size_t room = status || to != ROUTE_RUN ? 0 : chunked ? SCRIPT_MOST : (size_t)length;
    request *r = malloc(sizeof *r + room);
    if (!r) return MHD_NO;
    *r = (request){to, status, 0, room};
    *made = r;
    /* libmicrohttpd closes the connection after an answer to a body that it has not read. */
    return length > BODY_MOST ? refuse(connection, r) : MHD_YES;
}

/* What is not kept is read and forgotten, up to a point. */
static enum MHD_Result receive(request *r, const char *bytes, size_t *size)
{
    if (!r->status && r->route == ROUTE_RUN) {
        if (*size <= r->room - r->size) memcpy(r->body + r->size, bytes, *size);
        else r->status = MHD_HTTP_CONTENT_TOO_LARGE;
    }
    r->size += *size;
    *size = 0;
    return r->size > BODY_MOST ? MHD_NO : MHD_YES;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *bytes, size_t *size,
                              void **state)
{
    (void)version;
    server *s = user;
    request *r = *state;
    if (!r) return begin_request(connection, url, method, false, (request **)state);
    if (*size > 0) return receive(r, bytes, size);
    clients_set(s->clients, connection, CLIENT_WAITS);
    enum MHD_Result result = r->status ? refuse(connection, r) : run(connection, s, url + 5, r);
    clients_set(s->clients, connection, CLIENT_TAKES);
    return result;
}

static enum MHD_Result handle_stats(void *user, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *bytes, size_t *size,
                                    void **state)
{
    (void)version;
    const server *s = user;
    request *r = *state;
    if (!r) return begin_request(connection, url, method, true, (request **)state);
    if (*size > 0) return receive(r, bytes, size);
    if (r->status) return refuse(connection, r);
    if (r->route == ROUTE_STATS) return report(connection, s->customers);
    return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", (char *)(uintptr_t)page, page_size,
                 MHD_RESPMEM_PERSISTENT, NULL);
}

/* The answer is out, or will never be. */
static void end_request(void *user, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode why)
{
    (void)why;
    const server *s = user;
    clients_set(s->clients, connection, CLIENT_SENDS);
    free(*state);
    *state = NULL;
}

static void end_stats(void *user, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode why)
{
    (void)user, (void)connection, (void)why;
    free(*state);
    *state = NULL;
}

/* Names are compared as they come: decoded, "a%00b" would be the customer "a". */
static size_t leave_encoded(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
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
    case 's':
        s->stats = text;
        return 0;
    case 'n':
        s->connections = number(text, 1, 10000, state, "--connections");
        return 0;
    case 'o':
        s->connections_of_address = number(text, 1, 10000, state, "--per-address");
        return 0;
    case 'd':
        s->deadline_ms = number(text, 100, 600000, state, "--deadline");
        return 0;
    case 'r':
        s->limits.processors = number(text, 1, 1000, state, "--processors");
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
    case 'v':
        s->live = text ? text : "on";
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
    {"stats", 's', "[ADDRESS:]PORT", 0, "where GET /stats and the page are (127.0.0.1:8081), or `none'", 0},
    {"connections", 'n', "N", 0, "connections at once, a thread each (200)", 0},
    {"per-address", 'o', "N", 0, "of these, from one address (half of them)", 0},
    {"deadline", 'd', "MS", 0, "time to send a request, and time to take its answer (10000)", 0},
    {"processors", 'r', "N", 0, "scripts that run at once (as many as the process may use)", 0},
    {"memory", 'm', "MIB", 0, "linear memory of a customer (16)", 0},
    {"instances", 'i', "N", 0, "instances of a customer at once (8)", 0},
    {"customers", 'c', "N", 0, "customers at most, then idle ones are retired (100)", 0},
    {"time", 'l', "MS", 0, "CPU time that a script has (200)", 0},
    {"live", 'v', "SOCKET", OPTION_ARG_OPTIONAL,
     "`hakmem attach' and `hakmem top' may look: customers are profiled", 0},
    {0},
};

/* A descriptor for each connection. */
static bool raise_descriptors(unsigned connections)
{
    struct rlimit limit;
    rlim_t wanted = connections + CONNECTIONS_CUT + DESCRIPTORS_OTHER;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return true;
    limit.rlim_cur = wanted;
    if (wanted <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
    fprintf(stderr, "wasm-server: %u connections need %lu file descriptors, the limit is %lu\n", connections,
            (unsigned long)wanted, (unsigned long)limit.rlim_max);
    return false;
}

static struct MHD_Daemon *listen_at(const settings *s, const struct sockaddr_in *address, server *to)
{
    /* A thread each: a script runs in the thread of its connection. No timeout, clients.c has deadlines. */
    return MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0, NULL, NULL, handle, to,
        MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, s->connections + CONNECTIONS_CUT,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, to, MHD_OPTION_NOTIFY_CONNECTION, clients_notify,
        to->clients, MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, NULL, MHD_OPTION_END);
}

/* In one thread: who asks for figures waits for who asked before, and scripts for neither. */
static struct MHD_Daemon *listen_for_stats(const struct sockaddr_in *address, server *to)
{
    return MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle_stats, to,
                            MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, STATS_CONNECTIONS,
                            MHD_OPTION_CONNECTION_TIMEOUT, STATS_TIMEOUT_S, MHD_OPTION_NOTIFY_COMPLETED,
                            end_stats, NULL, MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, NULL,
                            MHD_OPTION_END);
}

static bool read_address(const char *address, unsigned port, struct sockaddr_in *out)
{
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &out->sin_addr) == 1) return true;
    fprintf(stderr, "wasm-server: '%s' is not an IPv4 address\n", address);
    return false;
}

/* [ADDRESS:]PORT */
static bool read_stats(const char *text, char address[INET_ADDRSTRLEN], struct sockaddr_in *out)
{
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
    const size_t length = colon ? (size_t)(colon - text) : 0;
    char *end;
    const unsigned long port = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || port > 65535 || length >= INET_ADDRSTRLEN) {
        fprintf(stderr, "wasm-server: --stats must be a port, an address and a port, or none; it is '%s'\n",
                text);
        return false;
    }
    snprintf(address, INET_ADDRSTRLEN, "%.*s", colon ? (int)length : 9, colon ? text : "127.0.0.1");
    return read_address(address, (unsigned)port, out);
}

static unsigned port_of(struct MHD_Daemon *daemon)
{
    return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* A server that nobody can look at serves. */
static void look(const char *place, customers *all)
{
    char error[256];
    customers_profile(all);
    if (hak_wasm_live_start(place, customers_look, all, error, sizeof error) != 0)
        fprintf(stderr, "wasm-server: --live: %s\n", error);
}

/* Until SIGTERM or SIGINT, which main blocks in all threads. Then no new connections; what runs may finish,
 * and after a while it is ended and its clients told. */
static void wait_for_end(struct MHD_Daemon *daemon, server *s)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    int which;
    sigwait(&ends, &which);

    int listening = MHD_quiesce_daemon(daemon);
    if (listening >= 0) shutdown(listening, SHUT_RD);
    clients_wait(s->clients, GRACE_MS);
    customers_end(s->customers);
    clients_wait(s->clients, ANSWER_MS);
    if (listening >= 0) close(listening);
}

static int serve(const settings *s, hak_wasm_host *host, engine *e)
{
    struct sockaddr_in address, stats_address;
    char stats_text[INET_ADDRSTRLEN];
    const bool tells = strcmp(s->stats, "none") != 0;
    if (!read_address(s->address, s->port, &address)) return 1;
    if (tells && !read_stats(s->stats, stats_text, &stats_address)) return 1;
    server to = {customers_new(host, e, &s->limits),
                 clients_new(s->connections, s->connections_of_address, s->deadline_ms)};
    if (s->live && to.customers) look(s->live, to.customers);
    const bool made = to.customers && to.clients;
    struct MHD_Daemon *daemon = made ? listen_at(s, &address, &to) : NULL;
    struct MHD_Daemon *stats = daemon && tells ? listen_for_stats(&stats_address, &to) : NULL;
    const bool serves = daemon && (stats || !tells);
    if (serves) {
        printf("listening on http://%s:%u/\n", s->address, port_of(daemon));
        if (stats) printf("statistics on http://%s:%u/\n", stats_text, port_of(stats));
        fflush(stdout);
        wait_for_end(daemon, &to);
    } else if (daemon) {
        fprintf(stderr, "wasm-server: cannot listen on --stats=%s\n", s->stats);
    } else {
        fprintf(stderr, "wasm-server: cannot listen on %s:%u\n", s->address, s->port);
    }
    if (stats) MHD_stop_daemon(stats);
    if (daemon) MHD_stop_daemon(daemon);
    hak_wasm_live_stop();
    if (to.clients) clients_delete(to.clients);
    if (to.customers) customers_delete(to.customers);
    return serves ? 0 : 1;
}

static unsigned usable_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

int main(int argc, char **argv)
{
    settings s = {.address = "127.0.0.1",
                  .stats = "127.0.0.1:8081",
                  .port = 8080,
                  .connections = 200,
                  .deadline_ms = 10000,
                  .limit_ms = 200,
                  .limits = {100, 8, usable_processors(), 16 << 20, 1 << 20}};
    const struct argp argp = {options,
                              option,
                              "QUICKJS.wasm",
                              "Runs scripts of customers, each in a QuickJS of its own, within limits.",
                              NULL,
                              NULL,
                              NULL};
    argp_parse(&argp, argc, argv, 0, NULL, &s);
    if (s.connections_of_address == 0) s.connections_of_address = (s.connections + 1) / 2;
    if (!raise_descriptors(s.connections)) return 1;

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
