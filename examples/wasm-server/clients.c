#define _GNU_SOURCE
#include "clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

typedef struct client {
    struct client *next, **link;
    int socket;
    struct in6_addr address; /* that of IPv4 as IPv6 writes it */
    bool known;              /* that address counts */
    client_state state;
    bool cut;
    uint64_t since; /* of the state, ms */
} client;

struct clients {
    unsigned most, most_of_address, deadline_ms;
    bool proxied;
    pthread_mutex_t lock; /* of all that is below */
    client *list;
    bool ending;
    pthread_cond_t end;
    pthread_t watch;
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* libmicrohttpd finds the connection closed by the client, and closes the socket after CONNECTION_CLOSED. */
static void cut(client *c)
{
    c->cut = true;
    shutdown(c->socket, SHUT_RDWR);
}

/* Cuts those whose deadline has passed, at most an eighth of it late. */
static void *watch(void *p)
{
    clients *all = p;
    unsigned pause = all->deadline_ms / 8 + 1;
    pthread_mutex_lock(&all->lock);
    while (!all->ending) {
        uint64_t now = now_ms();
        for (client *c = all->list; c; c = c->next) {
            if (!c->cut && c->state != CLIENT_WAITS && now - c->since > all->deadline_ms) cut(c);
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += pause % 1000 * 1000000L;
        until.tv_sec += pause / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&all->end, &all->lock, &until);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

clients *clients_new(unsigned most, unsigned most_of_address, unsigned deadline_ms, bool proxied)
{
    clients *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->most = most;
    all->most_of_address = most_of_address;
    all->deadline_ms = deadline_ms;
    all->proxied = proxied;
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&all->watch, NULL, watch, all) == 0) return all;
    free(all);
    return NULL;
}

void clients_delete(clients *all)
{
    pthread_mutex_lock(&all->lock);
    all->ending = true;
    pthread_cond_signal(&all->end);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->watch, NULL);
    pthread_cond_destroy(&all->end);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static bool of_address(const client *c, const struct in6_addr *address)
{
    return c->known && memcmp(&c->address, address, sizeof *address) == 0;
}

static struct in6_addr mapped(struct in_addr address)
{
    struct in6_addr out = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(out.s6_addr + 12, &address, sizeof address);
    return out;
}

/* If there are more than that many, of the address or (address NULL) of all, cuts the one that has kept the
 * server waiting longest: the newest itself if scripts of all others run. */
static void make_room(clients *all, unsigned most, const struct in6_addr *address)
{
    unsigned count = 0;
    client *oldest = NULL;
    for (client *c = all->list; c; c = c->next) {
        if (c->cut || (address && !of_address(c, address))) continue;
        count++;
        if (c->state != CLIENT_WAITS && (!oldest || c->since <= oldest->since)) oldest = c;
    }
    if (count > most && oldest) cut(oldest);
}

static void add(clients *all, struct MHD_Connection *connection, void **context)
{
    client *c = calloc(1, sizeof *c);
    *context = c;
    int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (!c) {
        shutdown(socket, SHUT_RDWR);
        return;
    }
    const struct sockaddr *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    c->socket = socket;
    if (from->sa_family == AF_INET && !all->proxied) {
        c->address = mapped(((const struct sockaddr_in *)(const void *)from)->sin_addr);
        c->known = true;
    }
    c->since = now_ms();
    pthread_mutex_lock(&all->lock);
    c->next = all->list;
    c->link = &all->list;
    if (c->next) c->next->link = &c->next;
    all->list = c;
    if (c->known) make_room(all, all->most_of_address, &c->address);
    make_room(all, all->most, NULL);
    pthread_mutex_unlock(&all->lock);
}

void clients_notify(void *user, struct MHD_Connection *connection, void **context,
                    enum MHD_ConnectionNotificationCode what)
{
    clients *all = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        add(all, connection, context);
        return;
    }
    client *c = *context;
    if (!c) return;
    pthread_mutex_lock(&all->lock);
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    pthread_mutex_unlock(&all->lock);
    free(c);
}

/* The last address of a list. */
static bool read_forwarded(const char *text, struct in6_addr *out)
{
    const char *comma = strrchr(text, ','), *at = comma ? comma + 1 : text;
    char address[INET6_ADDRSTRLEN];
    struct in_addr four;
    at += strspn(at, " \t");
    const size_t n = strcspn(at, " \t");
    if (n >= sizeof address || at[n + strspn(at + n, " \t")]) return false;
    memcpy(address, at, n);
    address[n] = '\0';
    if (inet_pton(AF_INET6, address, out) == 1) return true;
    if (inet_pton(AF_INET, address, &four) != 1) return false;
    *out = mapped(four);
    return true;
}

unsigned clients_request(clients *all, struct MHD_Connection *connection, const char *forwarded)
{
    client *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct in6_addr address = {0}; /* the proxy's own requests */
    if (!all->proxied || !c) return 0;
    if (forwarded && !read_forwarded(forwarded, &address)) return MHD_HTTP_BAD_REQUEST;
    unsigned count = 1;
    pthread_mutex_lock(&all->lock);
    c->known = false;
    for (const client *other = all->list; other; other = other->next)
        count += !other->cut && of_address(other, &address);
    c->known = count <= all->most_of_address;
    c->address = address;
    pthread_mutex_unlock(&all->lock);
    return count <= all->most_of_address ? 0 : MHD_HTTP_TOO_MANY_REQUESTS;
}

void clients_set(clients *all, struct MHD_Connection *connection, client_state state)
{
    client *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!c) return;
    pthread_mutex_lock(&all->lock);
    c->state = state;
    if (state == CLIENT_SENDS && all->proxied) c->known = false;
    c->since = now_ms();
    pthread_mutex_unlock(&all->lock);
}

void clients_wait(clients *all, unsigned ms)
{
    uint64_t end = now_ms() + ms;
    for (bool busy = true; busy && now_ms() < end; sleep_ms(10)) {
        busy = false;
        pthread_mutex_lock(&all->lock);
        for (client *c = all->list; c; c = c->next)
            busy |= !c->cut && c->state != CLIENT_SENDS;
        pthread_mutex_unlock(&all->lock);
    }
}
