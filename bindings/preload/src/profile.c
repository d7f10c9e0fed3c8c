#include "profile.h"

#include "callsite/names.h"
#include "callsite/walk.h"
#include "common/file.h"
#include "common/profile_json.h"
#include "common/report_json.h"
#include "heap.h"
#include "report.h"
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Each live block is in the table of an exact profile. */
#define EXACT_TABLE_BYTES ((size_t)1 << 36)

static hak_ctx *profiled; /* NULL = there is no profile */

/* ---- Stacks --------------------------------------------------------------------------------------- */

#ifdef HKC_CFI_WALK

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* Runs inside of malloc. Of the shim's own frames none is wanted. */
static size_t take_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    static hkc_walk walk;
    hkc_cfi_registers here;
    (void)user;
    (void)ctx;
    (void)site;
    hkc_cfi_here(&here);
    return hkc_walk_stack(&walk, &here, (uintptr_t)__ehdr_start, (uintptr_t)etext, frames, room);
}

#else

/* One stack for all: there is no way up from here. */
static size_t take_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
{
    (void)user;
    (void)ctx;
    (void)site;
    (void)frames;
    return 0 * room;
}

#endif

void hks_profile_begin(hak_ctx *ctx)
{
    const hks_settings *settings = hks_settings_get();
    if (*settings->profile == '\0') return;
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = settings->exact ? HAK_PROFILE_EXACT : HAK_PROFILE_SAMPLED;
    options.mean = settings->mean;
    options.table_bytes = settings->exact ? EXACT_TABLE_BYTES : 0;
    options.frames = take_frames;
    options.seed = (uint64_t)getpid();
    if (hak_profile_start(ctx, &options) == 0) profiled = ctx;
}

/* ---- The report ----------------------------------------------------------------------------------- */

static bool add_names(void *user, const hak_profile_stack *stack)
{
    for (unsigned i = 0; i < stack->depth; i++)
        if (!hkc_names_add(user, stack->frames[i])) return false;
    return true;
}

static void name_frame(void *user, uintptr_t frame, hkc_frame *out)
{
    const hkc_name *name = hkc_names_find(user, frame);
    out->native = true;
    if (!name) return;
    out->function = name->function;
    out->file = name->file;
    out->module = name->module;
}

/* They stay for the next report. */
static hkc_names names;

static int put_json(hkc_json *w)
{
    const hkc_report_process process = {.runtime = "c"};
    hak_profile_visit(profiled, add_names, &names);
    hkc_names_resolve(&names);
    hkc_report_json_begin(w, &process);
    hkc_report_json_context(w, hks_heap_name, profiled);
    const int error = hkc_profile_json(w, profiled, name_frame, &names);
    hkc_json_end(w);
    hkc_report_json_end(w);
    return error;
}

/* %p is the number of the process. false = too long. */
static bool expand(char *out, size_t size, const char *name, const char *suffix)
{
    const char *p = strstr(name, "%p");
    const int before = p ? (int)(p - name) : (int)strlen(name);
    char number[24] = "";
    if (p) snprintf(number, sizeof number, "%ld", (long)getpid());
    const int n =
        snprintf(out, size, "%.*s%s%s%s", before, name, number, p ? p + 2 : "", suffix ? suffix : "");
    return n >= 0 && (size_t)n < size;
}

void hks_profile_write(const char *suffix)
{
    if (!profiled) return;
    static char target[HKC_FILE_NAME];
    static hkc_file file;
    static hkc_json w;
    int error = expand(target, sizeof target, hks_settings_get()->profile, suffix) ? 0 : ENAMETOOLONG;
    if (!error) error = hkc_file_open(&file, target, 0666);
    if (!error) {
        hkc_json_open_fd(&w, file.fd);
        const int lost = put_json(&w);
        const int failed = hkc_json_close(&w);
        error = hkc_file_close(&file, failed ? failed : lost);
    }
    if (error) hks_report_failed("profile", target, error);
}
