/* A host's report on Windows and other systems: written beside its name and moved over it, with the process's totals, and
 * with the names of call sites. */
#include <hakmem/report.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "host report.json"
#ifdef _WIN32
#define DEVICE "NUL"
#define COMMAND ".exe\""
#else
#define DEVICE "/dev/null"
#define COMMAND "host\""
#endif

static int failures;

static void check(int ok, const char *what)
{
    if (ok) return;
    failures++;
    printf("failed: %s\n", what);
}

__attribute__((noinline)) void *take_here(hak_ctx *ctx, size_t n)
{
    return hak_alloc_cs(ctx, n, 0, HAK_CALLSITE());
}

__attribute__((noinline)) void *take_for_page(hak_ctx *ctx)
{
    void *p = take_here(ctx, 4096);
    __asm__ volatile("" ::: "memory");
    return p;
}

static char *read_all(const char *name)
{
    static char text[1 << 20];
    FILE *in = fopen(name, "rb");
    const size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
    if (in) fclose(in);
    text[n] = '\0';
    return text;
}

static unsigned long long number(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    options.frames = hak_native_frames;
    check(ctx && hak_profile_start(ctx, &options) == 0, "a profile");
    for (int i = 0; i < 100; i++)
        check(take_for_page(ctx) != NULL, "a page");

    FILE *old = fopen(NAME, "w");
    check(old && fputs("old", old) >= 0 && fclose(old) == 0, "a file from before");
    check(hak_report_path(NAME, &ctx, 1, NULL) == 0, "a report in its place");
    const char *text = read_all(NAME);
    check(strstr(text, "\"schema\":\"hakmem-report/1\"") != NULL, "the schema");
    check(strstr(text, "\"function\":\"take_for_page\"") != NULL, "the name of the call site");
    check(strstr(text, "host") != NULL && strstr(text, COMMAND) != NULL, "the command");
    check(number(text, "\"resident_bytes\":") >= 1 << 20, "resident bytes");
    check(number(text, "\"live_bytes\":") >= 409600, "live bytes");
    check(strchr(text, '\r') == NULL, "no carriage returns");

    check(hak_report_path("no such folder/report.json", &ctx, 1, NULL) == ENOENT,
          "a folder that is not there");
    check(hak_report_path(DEVICE, &ctx, 1, NULL) == 0, "a device");
    hak_report_options as_text = HAK_REPORT_OPTIONS_INIT;
    as_text.form = HAK_REPORT_TEXT;
    check(hak_report_stream(stdout, &ctx, 1, &as_text) == 0, "a report for people");
#ifndef __linux__
    check(hak_sites_new(NULL) == NULL, "no labels by call site here");
#endif
    remove(NAME);
    hak_ctx_destroy(ctx);
    return failures;
}
