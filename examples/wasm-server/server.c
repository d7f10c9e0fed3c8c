/* wasm-server: runs scripts of customers, each script in a QuickJS of its own, each customer within limits.
 *
 *   POST /run/NAME                     the body is JavaScript; the answer is its value
 *   POST /run/NAME/SCRIPT[/VERSION]    a script that the customer has stored; the body is its `input`
 *   PUT, GET, DELETE /scripts/NAME/... stores scripts
 *
 * and at another address, for who runs the server, not for customers:
 *
 *   GET  /stats      everything that is counted, in Prometheus' text format
 *   GET  /           a page that shows it live
 */
#define _GNU_SOURCE
#include "http.h"
#include "settings.h"

#include <hakmem/wasm_wasmtime.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_CUT = 64,   /* may wait for their threads to end, beside those that are allowed */
    DESCRIPTORS_OTHER = 64, /* that are not clients' connections */
    STATS_CONNECTIONS = 16,
    STATS_TIMEOUT_S = 10,
    GRACE_MS = 2000,   /* for scripts that run when the server ends */
    ANSWER_MS = 10000, /* for clients to take the last answers */
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

static const char unix_prefix[] = "unix:";

static bool is_unix(const settings *s)
{
    return strncmp(s->address, unix_prefix, sizeof unix_prefix - 1) == 0;
}

/* A socket in the file system; -1 after a message on stderr. One that a server left which ended without a
 * word is replaced, one that is in use is not. */
static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path || !*path) {
        fprintf(stderr, "wasm-server: '%s' is no path for a socket\n", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    const struct sockaddr *at = (const struct sockaddr *)&address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at, sizeof address) != 0 && errno == ECONNREFUSED) unlink(path);
    if (fd >= 0) close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, at, sizeof address) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
    fprintf(stderr, "wasm-server: cannot listen on unix:%s: %s\n", path, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

/* NULL after a message on stderr. */
static struct MHD_Daemon *listen_at(const settings *s, server *to)
{
    const bool local = is_unix(s);
    const char *path = local ? s->address + sizeof unix_prefix - 1 : NULL;
    struct sockaddr_in address;
    if (!local && !settings_address(s->address, s->port, &address)) return NULL;
    const int fd = local ? listen_unix(path) : -1;
    if (local && fd < 0) return NULL;
    struct MHD_OptionItem place[] = {
        {local ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, local ? fd : 0, local ? NULL : &address},
        {MHD_OPTION_END, 0, NULL},
    };
    /* A thread each: a script runs in the thread of its connection. No timeout, clients.c has deadlines. */
    struct MHD_Daemon *made = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0, NULL, NULL,
        http_handle, to, MHD_OPTION_ARRAY, place, MHD_OPTION_CONNECTION_LIMIT,
        s->connections + CONNECTIONS_CUT, MHD_OPTION_THREAD_STACK_SIZE, (size_t)2 * GUEST_STACK,
        MHD_OPTION_NOTIFY_COMPLETED, http_end, to, MHD_OPTION_NOTIFY_CONNECTION, clients_notify, to->clients,
        MHD_OPTION_UNESCAPE_CALLBACK, http_leave_encoded, NULL, MHD_OPTION_END);
    if (made) return made;
    if (local) {
        fprintf(stderr, "wasm-server: cannot listen on %s\n", s->address);
        close(fd);
        unlink(path);
    } else {
        fprintf(stderr, "wasm-server: cannot listen on %s:%u\n", s->address, s->port);
    }
    return NULL;
}

/* In one thread: who asks for figures waits for who asked before, and scripts for neither. */
static struct MHD_Daemon *listen_for_stats(const struct sockaddr_in *address, server *to)
{
    return MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, http_handle_stats, to,
                            MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, STATS_CONNECTIONS,
                            MHD_OPTION_CONNECTION_TIMEOUT, STATS_TIMEOUT_S, MHD_OPTION_NOTIFY_COMPLETED,
                            http_end_stats, NULL, MHD_OPTION_UNESCAPE_CALLBACK, http_leave_encoded, NULL,
                            MHD_OPTION_END);
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

/* What customers may do and where their scripts are; false after a message on stderr. */
static bool open_store(const settings *s, server *to)
{
    if (s->tokens && !(to->tokens = tokens_read(s->tokens))) return false;
    if (s->scripts && !(to->scripts = scripts_open(s->scripts))) return false;
    /* A customer who makes room for another would come back with a full account. */
    if (s->limits.quota.rate == 0 || tokens_customers(to->tokens) <= s->limits.customers) return true;
    fprintf(stderr, "wasm-server: under --quota, --customers must be at least the %u of %s\n",
            tokens_customers(to->tokens), s->tokens);
    return false;
}

static void tell_addresses(const settings *s, struct MHD_Daemon *daemon, const char *stats_text,
                           struct MHD_Daemon *stats)
{
    if (is_unix(s)) printf("listening on %s\n", s->address);
    else printf("listening on http://%s:%u/\n", s->address, port_of(daemon));
    if (stats) printf("statistics on http://%s:%u/\n", stats_text, port_of(stats));
    fflush(stdout);
}

static int listen_and_serve(const settings *s, server *to)
{
    struct sockaddr_in stats_address;
    char stats_text[INET_ADDRSTRLEN];
    const bool tells = strcmp(s->stats, "none") != 0;
    if (tells && !settings_stats(s->stats, stats_text, &stats_address)) return 1;
    struct MHD_Daemon *daemon = listen_at(s, to);
    if (!daemon) return 1;
    struct MHD_Daemon *stats = tells ? listen_for_stats(&stats_address, to) : NULL;
    const bool serves = stats || !tells;
    if (serves) {
        tell_addresses(s, daemon, stats_text, stats);
        wait_for_end(daemon, to);
    } else {
        fprintf(stderr, "wasm-server: cannot listen on --stats=%s\n", s->stats);
    }
    if (stats) MHD_stop_daemon(stats);
    MHD_stop_daemon(daemon);
    if (is_unix(s)) unlink(s->address + sizeof unix_prefix - 1);
    return serves ? 0 : 1;
}

static int serve(const settings *s, hak_wasm_host *host, engine *e)
{
    server to = {0};
    int status = 1;
    if (open_store(s, &to)) {
        to.customers = customers_new(host, e, &s->limits);
        to.clients = clients_new(s->connections, s->connections_of_address, s->deadline_ms, s->forwarded);
        if (s->live && to.customers) look(s->live, to.customers);
        if (to.customers && to.clients) status = listen_and_serve(s, &to);
        else fprintf(stderr, "wasm-server: no memory, or no thread\n");
        hak_wasm_live_stop();
    }
    if (to.clients) clients_delete(to.clients);
    if (to.customers) customers_delete(to.customers);
    scripts_close(to.scripts);
    tokens_delete(to.tokens);
    return status;
}

int main(int argc, char **argv)
{
    settings s;
    settings_read(&s, argc, argv);
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
    engine *e = engine_new(host, s.guest, s.code, s.limit_ms);
    int status = e ? serve(&s, host, e) : 1;
    if (e) engine_delete(e);
    /* The host stays: wasmtime's own blocks are in it as long as there is a process. */
    return status;
}
