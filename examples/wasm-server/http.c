#define _GNU_SOURCE
#include "http.h"

#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* page.html, as an array */
extern const unsigned char page[];
extern const size_t page_size;

enum {
    SCRIPT_MOST = 256 << 10,
    BODY_MOST = 1 << 20, /* is read to its end before it is refused, as most clients want it */
    DRAIN_MOST = 64 << 20
};

typedef enum route { ROUTE_RUN, ROUTE_SCRIPTS, ROUTE_STATS, ROUTE_PAGE, ROUTE_NONE, ROUTE_NO_STATS } route;

/* What a request is about, as far as its path says so. */
typedef struct target {
    char customer[33], script[33]; /* "" = none */
    unsigned version;              /* 0 = the latest */
} target;

typedef struct request {
    route route;
    unsigned status; /* that it is refused with; 0 = it is not */
    target target;
    bool told;   /* that its body is too large, and nothing can be said any more */
    size_t size; /* of the body so far */
    size_t room; /* for what of the body is kept */
    char body[];
} request;

static const char plain[] = "text/plain; charset=utf-8";

/* name: of a header that the answer has beside its type; NULL = none. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
                             size_t size, enum MHD_ResponseMemoryMode mode, const char *name,
                             const char *value)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
    if (!response) {
        if (mode == MHD_RESPMEM_MUST_FREE) free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    /* What a script answers is not to be taken for a page. */
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (name) MHD_add_response_header(response, name, value);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return reply(connection, status, plain, (char *)(uintptr_t)text, strlen(text), MHD_RESPMEM_PERSISTENT,
                 NULL, NULL);
}

static const char too_large[] = "too large: a script has at most 256 KiB\n";

static enum MHD_Result refuse(struct MHD_Connection *connection, const request *r)
{
    const char *text =
        r->route == ROUTE_NO_STATS ? "there is POST /run/NAME\n" : "there are GET /stats and GET /\n";
    const char *name = NULL, *value = NULL;
    switch (r->status) {
    case MHD_HTTP_BAD_REQUEST:
        text = "a name is 1 to 32 of a-z, 0-9 and '-', not encoded\n";
        break;
    case MHD_HTTP_UNAUTHORIZED:
        text = "a token of the customer is needed: Authorization: Bearer TOKEN\n";
        name = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
        value = "Bearer";
        break;
    case MHD_HTTP_CONTENT_TOO_LARGE:
        text = too_large;
        break;
    case MHD_HTTP_TOO_MANY_REQUESTS:
        text = "too many requests of this address at once\n";
        break;
    case MHD_HTTP_METHOD_NOT_ALLOWED:
        name = MHD_HTTP_HEADER_ALLOW;
        value = r->route == ROUTE_RUN       ? "POST"
                : r->route == ROUTE_SCRIPTS ? "GET, HEAD, PUT, DELETE"
                                            : "GET, HEAD";
        text = r->route == ROUTE_RUN       ? "POST only\n"
               : r->route == ROUTE_SCRIPTS ? "GET, HEAD, PUT and DELETE only\n"
                                           : "GET and HEAD only\n";
        break;
    default:
        break;
    }
    return reply(connection, r->status, plain, (char *)(uintptr_t)text, strlen(text), MHD_RESPMEM_PERSISTENT,
                 name, value);
}

/* ---- Scripts that run ---------------------------------------------------------------------------- */

static bool wants_json(struct MHD_Connection *connection)
{
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    return accept && strstr(accept, "application/json");
}

/* NULL = no memory. */
static char *as_json(outcome result, const answer *a, unsigned version, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    if (!to) return NULL;
    fprintf(to, "{\"outcome\":\"%s\",\"value\":", outcome_name(result));
    text_write_json(to, a->text, a->length);
    if (version) fprintf(to, ",\"version\":%u", version);
    fprintf(to, ",\"cpu_ms\":%.3f,\"console\":", a->seconds * 1e3);
    console_write_json(&a->console, to);
    fprintf(to, ",\"console_lost\":%u}\n", a->console.lost);
    bool whole = !ferror(to);
    if (fclose(to) == 0 && whole) return text;
    free(text);
    return NULL;
}

/* version: of the script that was stored; 0 = none was. */
static enum MHD_Result run(struct MHD_Connection *connection, server *s, const char *name, const job *j,
                           unsigned version)
{
    static const unsigned status[RUN_OUTCOMES] = {
        [RUN_OK] = MHD_HTTP_OK,
        [RUN_ERROR] = MHD_HTTP_UNPROCESSABLE_CONTENT,
        [RUN_TIME] = MHD_HTTP_REQUEST_TIMEOUT,
        [RUN_TRAP] = MHD_HTTP_UNPROCESSABLE_CONTENT,
        [RUN_REFUSED] = MHD_HTTP_SERVICE_UNAVAILABLE,
        [RUN_QUOTA] = MHD_HTTP_TOO_MANY_REQUESTS,
    };
    answer a = {0};
    outcome result = customers_run(s->customers, name, j, &a);
    bool json = wants_json(connection);
    if (json && a.text) {
        char *text = as_json(result, &a, version, &a.length);
        free(a.text);
        a.text = text;
    }
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.0f", ceil(fmax(a.wait, 1)));
    const char *retry = result == RUN_QUOTA ? MHD_HTTP_HEADER_RETRY_AFTER : NULL;
    enum MHD_Result sent = MHD_NO;
    if (a.text)
        sent = reply(connection, status[result], json ? "application/json" : plain, a.text, a.length,
                     MHD_RESPMEM_MUST_FREE, retry, seconds);
    a.text = NULL;
    answer_free(&a);
    return sent;
}

static enum MHD_Result run_stored(struct MHD_Connection *connection, server *s, const request *r)
{
    job j = {.input = r->body, .input_size = r->size};
    unsigned version = r->target.version;
    char *script = scripts_get(s->scripts, r->target.customer, r->target.script, &version, &j.size);
    if (!script) return say(connection, MHD_HTTP_NOT_FOUND, "no such script, or no such version of it\n");
    j.script = script;
    enum MHD_Result result = run(connection, s, r->target.customer, &j, version);
    free(script);
    return result;
}

/* ---- Scripts that are stored --------------------------------------------------------------------- */

static enum MHD_Result store(struct MHD_Connection *connection, server *s, const request *r)
{
    unsigned version;
    stored result = scripts_put(s->scripts, r->target.customer, r->target.script, r->body, r->size, &version);
    if (result == STORED_TOO_MANY)
        return say(connection, MHD_HTTP_CONFLICT, "too many scripts: 100 at most\n");
    if (result == STORED_NOT)
        return say(connection, MHD_HTTP_INSUFFICIENT_STORAGE, "it could not be stored\n");
    char *text = NULL;
    int size = asprintf(&text, "%u\n", version);
    if (size < 0) return MHD_NO;
    return reply(connection, MHD_HTTP_CREATED, plain, text, (size_t)size, MHD_RESPMEM_MUST_FREE, NULL, NULL);
}

static enum MHD_Result about_script(struct MHD_Connection *connection, server *s, const char *method,
                                    const request *r)
{
    const target *t = &r->target;
    if (strcmp(method, MHD_HTTP_METHOD_PUT) == 0) return store(connection, s, r);
    if (strcmp(method, MHD_HTTP_METHOD_DELETE) == 0) {
        bool removed = scripts_remove(s->scripts, t->customer, t->script);
        return removed ? say(connection, MHD_HTTP_OK, "removed\n")
                       : say(connection, MHD_HTTP_NOT_FOUND, "no such script\n");
    }
    size_t size = 0;
    unsigned version = t->version;
    char *text = *t->script ? scripts_get(s->scripts, t->customer, t->script, &version, &size)
                            : scripts_list(s->scripts, t->customer, &size);
    if (!text) return say(connection, MHD_HTTP_NOT_FOUND, "no such script, or no such version of it\n");
    char number[16];
    snprintf(number, sizeof number, "%u", version);
    return reply(connection, MHD_HTTP_OK, plain, text, size, MHD_RESPMEM_MUST_FREE,
                 *t->script ? "X-Script-Version" : NULL, number);
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
                 MHD_RESPMEM_MUST_FREE, NULL, NULL);
}

/* ---- Requests ------------------------------------------------------------------------------------ */

/* Customers see no figures of each other. */
static route find_route(const server *s, const char *url, bool stats)
{
    if (stats)
        return strcmp(url, "/stats") == 0 ? ROUTE_STATS : strcmp(url, "/") == 0 ? ROUTE_PAGE : ROUTE_NONE;
    if (strncmp(url, "/run/", 5) == 0) return ROUTE_RUN;
    return s->scripts && strncmp(url, "/scripts/", 9) == 0 ? ROUTE_SCRIPTS : ROUTE_NO_STATS;
}

/* A good name up to the next '/', which *at then is behind. */
static bool read_name(const char **at, char name[33])
{
    size_t n = strcspn(*at, "/");
    if (n > 32) return false;
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n;
    return customers_name_is_good(name);
}

/* NAME, NAME/SCRIPT or NAME/SCRIPT/VERSION. */
static bool read_target(const char *at, bool with_script, target *t)
{
    *t = (target){0};
    if (!read_name(&at, t->customer)) return false;
    if (!*at) return true;
    at++;
    if (!with_script || !read_name(&at, t->script)) return false;
    if (!*at) return true;
    at++;
    char *end;
    unsigned long version = strtoul(at, &end, 10);
    t->version = (unsigned)version;
    return *at >= '1' && *at <= '9' && !*end && version <= 999999999;
}

static bool method_fits(route to, const char *method, const target *t)
{
    bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (to == ROUTE_RUN) return strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    if (reads || to != ROUTE_SCRIPTS) return reads;
    bool writes = strcmp(method, MHD_HTTP_METHOD_PUT) == 0 || strcmp(method, MHD_HTTP_METHOD_DELETE) == 0;
    return writes && *t->script && !t->version;
}

/* The headers are here, the body is not. length: of the body, as far as the client says. */
static unsigned judge(const server *s, struct MHD_Connection *connection, route to, const char *url,
                      const char *method, unsigned long long length, target *t)
{
    if (to == ROUTE_NONE || to == ROUTE_NO_STATS) return MHD_HTTP_NOT_FOUND;
    const bool of_customer = to == ROUTE_RUN || to == ROUTE_SCRIPTS;
    const bool readable = !of_customer || read_target(strchr(url + 1, '/') + 1, s->scripts, t);
    if (!method_fits(to, method, t)) return MHD_HTTP_METHOD_NOT_ALLOWED;
    if (!of_customer) return 0;
    if (!readable) return MHD_HTTP_BAD_REQUEST;
    const char *token =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (s->tokens && !tokens_allow(s->tokens, t->customer, token)) return MHD_HTTP_UNAUTHORIZED;
    return length > SCRIPT_MOST ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}

/* A proxy may append to the header of its client, or add another: the last address of the last one is its
 * own. */
static enum MHD_Result find_forwarded(void *user, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    const char **last = user;
    if (strcasecmp(key, "X-Forwarded-For") == 0) *last = value ? value : "";
    return MHD_YES;
}

static unsigned judge_client(server *s, struct MHD_Connection *connection)
{
    const char *forwarded = NULL;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, find_forwarded, &forwarded);
    return clients_request(s->clients, connection, forwarded);
}

static enum MHD_Result begin_request(struct MHD_Connection *connection, server *s, const char *url,
                                     const char *method, bool stats, request **made)
{
    const char *header =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool chunked =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    unsigned long long length = header && !chunked ? strtoull(header, NULL, 10) : 0;
    route to = find_route(s, url, stats);
    target t = {0};
    unsigned status = judge(s, connection, to, url, method, length, &t);
    if (!status && !stats) status = judge_client(s, connection);
    if (!status && length > BODY_MOST) status = MHD_HTTP_CONTENT_TOO_LARGE;
    const bool keeps = !status && (to == ROUTE_RUN || to == ROUTE_SCRIPTS);
    size_t room = !keeps ? 0 : chunked ? SCRIPT_MOST : (size_t)length;
    request *r = malloc(sizeof *r + room);
    if (!r) return MHD_NO;
    *r = (request){to, status, t, false, 0, room};
    *made = r;
    /* libmicrohttpd closes the connection after an answer to a body that it has not read. */
    return length > BODY_MOST ? refuse(connection, r) : MHD_YES;
}

/* libmicrohttpd takes no answer in the middle of a body whose end it does not know. So this one goes out by
 * hand, and is the last: what still comes is read and forgotten, for a connection that is closed with bytes
 * in it takes the answer away from the client. */
static void tell_too_large(struct MHD_Connection *connection)
{
    char text[256];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: %s\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     plain, sizeof too_large - 1, too_large);
    int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (send(socket, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n) shutdown(socket, SHUT_WR);
}

/* What is not kept is read and forgotten, up to a point. */
static enum MHD_Result receive(struct MHD_Connection *connection, request *r, const char *bytes, size_t *size)
{
    if (!r->status && (r->route == ROUTE_RUN || r->route == ROUTE_SCRIPTS)) {
        if (*size <= r->room - r->size) memcpy(r->body + r->size, bytes, *size);
        else r->status = MHD_HTTP_CONTENT_TOO_LARGE;
    }
    r->size += *size;
    *size = 0;
    if (r->size > BODY_MOST && !r->told) {
        r->told = true;
        tell_too_large(connection);
    }
    return r->size > DRAIN_MOST ? MHD_NO : MHD_YES;
}

enum MHD_Result http_handle(void *user, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *bytes, size_t *size,
                            void **state)
{
    (void)version;
    server *s = user;
    request *r = *state;
    if (!r) return begin_request(connection, s, url, method, false, (request **)state);
    if (*size > 0) return receive(connection, r, bytes, size);
    if (r->told) return MHD_NO;
    clients_set(s->clients, connection, CLIENT_WAITS);
    enum MHD_Result result;
    if (r->status) result = refuse(connection, r);
    else if (r->route == ROUTE_SCRIPTS) result = about_script(connection, s, method, r);
    else if (*r->target.script) result = run_stored(connection, s, r);
    else result = run(connection, s, r->target.customer, &(job){.script = r->body, .size = r->size}, 0);
    clients_set(s->clients, connection, CLIENT_TAKES);
    return result;
}

enum MHD_Result http_handle_stats(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes, size_t *size,
                                  void **state)
{
    (void)version;
    server *s = user;
    request *r = *state;
    if (!r) return begin_request(connection, s, url, method, true, (request **)state);
    if (*size > 0) return receive(connection, r, bytes, size);
    if (r->told) return MHD_NO;
    if (r->status) return refuse(connection, r);
    if (r->route == ROUTE_STATS) return report(connection, s->customers);
    return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", (char *)(uintptr_t)page, page_size,
                 MHD_RESPMEM_PERSISTENT, NULL, NULL);
}

/* The answer is out, or will never be. */
void http_end(void *user, struct MHD_Connection *connection, void **state,
              enum MHD_RequestTerminationCode why)
{
    (void)why;
    const server *s = user;
    clients_set(s->clients, connection, CLIENT_SENDS);
    free(*state);
    *state = NULL;
}

void http_end_stats(void *user, struct MHD_Connection *connection, void **state,
                    enum MHD_RequestTerminationCode why)
{
    (void)user, (void)connection, (void)why;
    free(*state);
    *state = NULL;
}

/* Names are compared as they come: decoded, "a%00b" would be the customer "a". */
size_t http_leave_encoded(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
}
