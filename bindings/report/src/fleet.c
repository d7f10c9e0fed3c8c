#include "fleet.h"

#include "common/clock.h"
#include "common/live.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hkr_member {
    char what[HKC_LIVE_PATH];
    int64_t until;
};

static void drop(hkr_fleet *f)
{
    for (size_t i = 0; i < f->count; i++)
        hkr_free(f->reports[i]);
    free(f->reports);
    f->reports = NULL;
    f->count = 0;
}

/* ---- Processes that do not answer ----------------------------------------------------------------- */

static bool is_silent(hkr_fleet *f, const char *what, int64_t now)
{
    size_t kept = 0;
    bool found = false;
    for (size_t i = 0; i < f->silent_count; i++) {
        if (f->silent[i].until < now) continue;
        found = found || strcmp(f->silent[i].what, what) == 0;
        f->silent[kept++] = f->silent[i];
    }
    f->silent_count = kept;
    return found;
}

static void note_silent(hkr_fleet *f, const char *what, int64_t now)
{
    if (strlen(what) >= sizeof f->silent->what) return;
    hkr_member *more = realloc(f->silent, (f->silent_count + 1) * sizeof *more);
    if (!more) return;
    f->silent = more;
    strcpy(more[f->silent_count].what, what);
    more[f->silent_count++].until = now + HKR_FLEET_SILENT;
}

/* ---- Asking --------------------------------------------------------------------------------------- */

static bool has_process(const hkr_fleet *f, const hkr_report *r)
{
    const double process = hkr_number(r->process, "pid");
    for (size_t i = 0; i < f->count; i++)
        if (hkr_number(f->reports[i]->process, "pid") == process) return true;
    return false;
}

static void tell_most(hkr_fleet *f)
{
    if (!f->told_most)
        fprintf(stderr, "hakmem: more than %d processes: the others are left out\n", HKR_FLEET_MOST);
    f->told_most = true;
}

static void ask(hkr_fleet *f, const char *what)
{
    const int64_t began = hkc_milliseconds();
    hkr_source source;
    if (f->count == HKR_FLEET_MOST) {
        tell_most(f);
        return;
    }
    if (is_silent(f, what, began)) {
        hkr_fail(f->error, "%.300s: no answer, and it is asked again in a minute", what);
        return;
    }
    hkr_report *r = hkr_source_find(&source, what, f->error) ? hkr_source_load(&source, f->error) : NULL;
    if (!r && hkc_milliseconds() - began >= HKR_SOURCE_SECONDS * 1000 - 100)
        note_silent(f, what, hkc_milliseconds());
    hkr_report **more =
        r && !has_process(f, r) ? realloc(f->reports, (f->count + 1) * sizeof(hkr_report *)) : NULL;
    if (!more) {
        hkr_free(r);
        return;
    }
    r->path = ""; /* the source's own ends with this call */
    f->reports = more;
    more[f->count++] = r;
}

/* Opens the folder if nobody else can have put something there: its place is open to all. NULL = no. */
static DIR *open_own(const char *folder)
{
    struct stat is;
    DIR *all = opendir(folder);
    if (!all || (fstat(dirfd(all), &is) == 0 && is.st_uid == geteuid() && (is.st_mode & 077) == 0))
        return all;
    closedir(all);
    return NULL;
}

/* Asks every process that has a socket in the folder of this user. */
static void ask_all(hkr_fleet *f)
{
    char folder[HKC_LIVE_PATH];
    hkc_live_path(folder, geteuid(), 1);
    *strrchr(folder, '/') = '\0';
    DIR *all = open_own(folder);
    for (const struct dirent *one; all && (one = readdir(all));)
        if (one->d_name[strspn(one->d_name, "0123456789")] == '\0') ask(f, one->d_name);
    if (all) closedir(all);
    if (f->count == 0 && !*f->error)
        hkr_fail(f->error, "no process of this user listens: start one with HAKMEM=live=on, --hak-live=on or "
                           "python -m hakmem run --live");
}

void hkr_fleet_load(hkr_fleet *f)
{
    const int64_t now = hkc_milliseconds();
    if (f->loaded && now >= f->loaded && now - f->loaded < HKR_FLEET_FRESH) return;
    drop(f);
    f->error[0] = '\0';
    for (size_t i = 0; i < f->named_count; i++)
        ask(f, f->named[i]);
    if (f->named_count == 0) ask_all(f);
    f->loaded = hkc_milliseconds();
}

bool hkr_fleet_begin(hkr_fleet *f, char *const *named, size_t count)
{
    *f = (hkr_fleet){.named = named, .named_count = count};
    hkr_fleet_load(f);
    if (count == 0 || f->count > 0) return true;
    fprintf(stderr, "hakmem: %s\n", f->error);
    hkr_fleet_end(f);
    return false;
}

void hkr_fleet_end(hkr_fleet *f)
{
    drop(f);
    free(f->silent);
    f->silent = NULL;
    f->silent_count = 0;
}
