/* OTLP over HTTP by libcurl. What cannot be sent is not kept: gauges that are late are of no use, and a counter's
 * next value holds all before it. */
#include "push.h"
#include "fleet.h"
#include "otlp.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE = 10 }; /* seconds for one request */

typedef struct pusher {
    hkr_fleet fleet;
    CURL *to;
    char last[HKR_ERROR]; /* what was wrong last; "" = nothing */
} pusher;

/* Prints the line if `wrong` is not what was wrong last time; "" = nothing is wrong. */
static void tell(pusher *p, const char *wrong, const char *line)
{
    if (strcmp(p->last, wrong) == 0) return;
    if (*wrong) fprintf(stderr, "hakmem: %s\n", line);
    else if (*p->last) fputs("hakmem: reports are sent again\n", stderr);
    snprintf(p->last, sizeof p->last, "%s", wrong);
}

static size_t read_nothing(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes, (void)user;
    return size * count;
}

/* Returns the answer's status; 0 = there was none: *code says why in general, and `error` more of it. */
static long send_text(pusher *p, const char *text, CURLcode *code, char error[CURL_ERROR_SIZE])
{
    long status = 0;
    error[0] = '\0';
    curl_easy_setopt(p->to, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(p->to, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(p->to, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
    *code = curl_easy_perform(p->to);
    if (*code == CURLE_OK) curl_easy_getinfo(p->to, CURLINFO_RESPONSE_CODE, &status);
    else if (!*error) snprintf(error, CURL_ERROR_SIZE, "%s", curl_easy_strerror(*code));
    return status;
}

static void push_once(pusher *p)
{
    char line[HKR_ERROR] = "", error[CURL_ERROR_SIZE];
    const char *wrong = line;
    CURLcode code = CURLE_OK;
    struct timespec now;
    hkr_fleet_load(&p->fleet);
    if (p->fleet.count == 0) {
        tell(p, p->fleet.error, p->fleet.error);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    json_t *made =
        hkr_otlp(p->fleet.reports, p->fleet.count, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    char *text = json_dumps(made, JSON_COMPACT);
    json_decref(made);
    const long status = text ? send_text(p, text, &code, error) : 0;
    free(text);
    if (!text) hkr_fail(line, "no memory for a report");
    else if (status == 0) hkr_fail(line, "the collector does not answer: %.300s", error);
    else if (status / 100 != 2) hkr_fail(line, "the collector answers %ld", status);
    /* libcurl's text has the milliseconds of this try in it. */
    if (text && status == 0) wrong = curl_easy_strerror(code);
    tell(p, wrong, line);
}

/* Whether the URL is one of HTTP. Without a path, it gets that of metrics. */
static bool set_url(pusher *p, const char *url)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *path = NULL, *whole = NULL;
    bool ok = parts && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_PATH, &path, 0) == CURLUE_OK &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    if (ok && strcmp(path, "/") == 0) ok = curl_url_set(parts, CURLUPART_PATH, "/v1/metrics", 0) == CURLUE_OK;
    ok = ok && curl_url_get(parts, CURLUPART_URL, &whole, 0) == CURLUE_OK &&
         curl_easy_setopt(p->to, CURLOPT_URL, whole) == CURLE_OK;
    curl_free(scheme);
    curl_free(path);
    curl_free(whole);
    curl_url_cleanup(parts);
    return ok;
}

static void prepare(pusher *p, struct curl_slist *heads)
{
    curl_easy_setopt(p->to, CURLOPT_HTTPHEADER, heads);
    curl_easy_setopt(p->to, CURLOPT_WRITEFUNCTION, read_nothing);
    curl_easy_setopt(p->to, CURLOPT_TIMEOUT, (long)PATIENCE);
    curl_easy_setopt(p->to, CURLOPT_NOSIGNAL, 1L);
}

/* Until one of the signals came. */
static void run(pusher *p, double interval, const sigset_t *ends)
{
    const struct timespec wait = {.tv_sec = (time_t)interval,
                                  .tv_nsec = (long)((interval - floor(interval)) * 1e9)};
    int number;
    do
        push_once(p);
    while ((number = sigtimedwait(ends, NULL, &wait)) < 0 && (errno == EAGAIN || errno == EINTR));
}

int hkr_push(const char *url, double interval, char *const *named, size_t count)
{
    sigset_t ends;
    pusher p = {.to = curl_easy_init()};
    struct curl_slist *heads = curl_slist_append(NULL, "Content-Type: application/json");
    int status = 1;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    if (!p.to || !heads) {
        fputs("hakmem: out of memory\n", stderr);
    } else if (!set_url(&p, url)) {
        char text[200];
        hkr_clean(text, sizeof text, url);
        fprintf(stderr, "hakmem: '%s' is no URL of a collector, such as http://localhost:4318\n", text);
        status = 2;
    } else if (hkr_fleet_begin(&p.fleet, named, count)) {
        pthread_sigmask(SIG_BLOCK, &ends, NULL);
        prepare(&p, heads);
        run(&p, interval, &ends);
        hkr_fleet_end(&p.fleet);
        status = 0;
    }
    curl_slist_free_all(heads);
    curl_easy_cleanup(p.to);
    return status;
}
