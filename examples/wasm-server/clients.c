#define _GNU_SOURCE
#include "clients.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

typedef struct client {
    struct client *next, **link;
    int socket;
    in_addr_t address;
    client_state state;
    bool cut;
    uint64_t since; /* of the state, ms */
} client;

struct clients {
    unsigned most, most_of_address, deadline_ms;
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

clients *clients_new(unsigned most, unsigned most_of_address, unsigned deadline_ms)
{
    clients *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->most = most;
    all->most_of_address = most_of_address;
    all->deadline_ms = deadline_ms;
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

/* If there are more than that many, of the address or (address NULL) of all, cuts the one that has kept the
 * server waiting longest: the newest itself if scripts of all others run. */
static void make_room(clients *all, unsigned most, const in_addr_t *address)
{
    unsigned count = 0;
    client *oldest = NULL;
    for (client *c = all->list; c; c = c->next) {
        if (c->cut || (address && c->address != *address)) continue;
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
    c->address = ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
    c->since = now_ms();
    pthread_mutex_lock(&all->lock);
    c->next = all->list;
    c->link = &all->list;
    if (c->next) c->next->link = &c->next;
    all->list = c;
    make_room(all, all->most_of_address, &c->address);
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

void clients_set(clients *all, struct MHD_Connection *connection, client_state state)
{
    client *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!c) return;
    pthread_mutex_lock(&all->lock);
    c->state = state;
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
