#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING = 16 };

static bool fail_place(hkr_listener *l, const char *place, int number, char *error)
{
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
    return hkr_fail(error, "%.200s: %s", place, strerror(number));
}

/* ---- A file --------------------------------------------------------------------------------------- */

/* Whether the file is a socket that nobody listens at. */
static bool is_left_behind(const struct sockaddr_un *address)
{
    struct stat is;
    if (stat(address->sun_path, &is) != 0 || !S_ISSOCK(is.st_mode)) return false;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refused =
        fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return refused;
}

static bool listen_at_file(hkr_listener *l, const char *path, char *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return fail_place(l, path, ENAMETOOLONG, error);
    strcpy(address.sun_path, path);
    strcpy(l->text, path);
    if (is_left_behind(&address)) unlink(path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const mode_t mask = umask(0077);
    const bool bound =
        l->fd >= 0 && bind(l->fd, (const struct sockaddr *)&address, sizeof address) == 0;
    const int number = errno;
    umask(mask);
    if (!bound) return fail_place(l, path, number, error);
    l->local = true;
    if (listen(l->fd, WAITING) == 0) return true;
    fail_place(l, path, errno, error);
    unlink(path);
    return false;
}

/* ---- A port --------------------------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Takes "HOST:PORT" apart. false = there is no port from 0 to 65535 at the end. */
static bool split(const char *place, char *host, size_t size, char port[6])
{
    const char *colon = strrchr(place, ':'), *number = colon ? colon + 1 : place;
    size_t n = colon ? (size_t)(colon - place) : 0;
    const size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 5 || number[digits] != '\0' || atoi(number) > 65535 || n >= size) return false;
    strcpy(port, number);
    const char *from = place;
    if (n > 1 && place[0] == '[' && place[n - 1] == ']') from++, n -= 2;
    else if (memchr(place, ':', n)) return false; /* an address of IPv6 stands in brackets */
    memcpy(host, from, n);
    host[n] = '\0';
    if (colon && n == 0) return false;
    if (!colon) strcpy(host, "127.0.0.1");
    return true;
}

/* Returns the error of the last call; 0 = the socket listens. */
static int open_at(hkr_listener *l, const struct addrinfo *a)
{
    const int on = 1;
    l->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
    if (l->fd < 0) return errno;
    setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(l->fd, a->ai_addr, a->ai_addrlen) == 0 && listen(l->fd, WAITING) == 0) return 0;
    const int number = errno;
    close(l->fd);
    l->fd = -1;
    return number;
}

static void name_port(hkr_listener *l)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[200] = "?", port[8] = "?";
    if (getsockname(l->fd, (struct sockaddr *)&address, &size) == 0) {
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
        l->local = is_loopback((struct sockaddr *)&address);
    }
    const bool six = strchr(host, ':');
    snprintf(l->text, sizeof l->text, "http://%s%s%s:%s/", six ? "[" : "", host, six ? "]" : "", port);
}

bool hkr_listen(hkr_listener *l, const char *place, char *error)
{
    *l = (hkr_listener){.fd = -1};
    if (strchr(place, '/')) return listen_at_file(l, place, error);
    char host[200], port[6];
    if (!split(place, host, sizeof host, port))
        return hkr_fail(error,
                        "%.200s: not a place to listen at: PORT, HOST:PORT, or a path with a slash", place);
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    const int unknown = getaddrinfo(host, port, &wanted, &found);
    if (unknown) return hkr_fail(error, "%.200s: %s", place, gai_strerror(unknown));
    int number = EADDRNOTAVAIL;
    for (const struct addrinfo *a = found; a && number; a = a->ai_next)
        number = open_at(l, a);
    freeaddrinfo(found);
    if (number) return fail_place(l, place, number, error);
    l->network = true;
    name_port(l);
    return true;
}

void hkr_listen_end(hkr_listener *l)
{
    if (!l->network) unlink(l->text);
}
