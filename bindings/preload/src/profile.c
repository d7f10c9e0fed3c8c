#include "profile.h"

#include "callsite/frame.h"
#include "callsite/walk.h"
#include "common/file.h"
#include "common/live.h"
#include "common/mapped.h"
#include "common/otel.h"
#include "common/pipe.h"
#include "common/profile_json.h"
#include "common/report.h"
#include "common/report_json.h"
#include "common/stream.h"
#include "context.h"
#include "report.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Each live block is in the table of an exact profile. */
#define EXACT_TABLE_BYTES ((size_t)1 << 36)

/* Some 20,000 stacks and their windows; the table begins with 32 KiB. */
#define SAMPLED_TABLE_BYTES ((size_t)16 << 20)

static bool profiled; /* there is a profile */

/* ---- Stacks --------------------------------------------------------------------------------------- */

#ifdef HKC_CFI_WALK

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* Runs inside of malloc. Of the shim's own frames none is wanted. */
size_t hks_profile_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
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
size_t hks_profile_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room)
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
    if (!hks_settings_profile(settings)) return;
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = settings->exact ? HAK_PROFILE_EXACT : HAK_PROFILE_SAMPLED;
    options.mean = settings->mean;
    options.table_bytes = settings->exact ? EXACT_TABLE_BYTES : SAMPLED_TABLE_BYTES;
    options.frames = hks_profile_frames;
    options.seed = (uint64_t)getpid();
    options.resident = hkc_mapped_resident;
    options.window_ns = settings->window_ns;
    hkc_otel_tell(&options);
    if (hak_profile_start(ctx, &options) == 0) profiled = true;
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
    hkc_frame_of(user, frame, out);
}

/* What the thread of hks_profile_listen and the end of the process share; names stay for the next report. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static hkc_names names;

/* The program's file, for the names of labels that are tokens, where no stacks name it. */
static void program_json(hkc_json *w, const hak_ctx *ctx)
{
    const uintptr_t entry = getauxval(AT_ENTRY);
    hkc_frame program = {0};
    if (profiled || !hak_label_name(ctx, 1) || !hkc_names_add(&names, entry)) return;
    hkc_names_resolve(&names);
    hkc_frame_of(&names, entry, &program);
    if (!program.path || !program.build_id) return;
    hkc_json_array(w, "images");
    hkc_json_object(w, NULL);
    hkc_json_text(w, "path", program.path);
    hkc_json_text(w, "build_id", program.build_id);
    hkc_json_end(w);
    hkc_json_end(w);
}

static int put_json(void *unused, hkc_json *w)
{
    hak_ctx *ctx = hks_context_made();
    hak_stats stats = {.size = sizeof stats};
    hkc_parts *parts = hks_report_parts();
    hak_ctx *maps = hkc_mapped_context();
    const hkc_report_process process = {.runtime = "c", .parts = parts};
    (void)unused;
    pthread_mutex_lock(&writing);
    hkc_report_json_begin(w, &process);
    hkc_parts_close(parts);
    hak_ctx_stats(ctx, &stats);
    stats.hard_limit = hks_settings_get()->limit; /* that of the heap is less by what is mapped */
    hkc_report_json_context_as(w, hks_process.name, ctx, &stats);
    hak_profile_visit(ctx, add_names, &names);
    if (maps) hak_profile_visit(maps, add_names, &names);
    hkc_names_resolve(&names);
    int error = hkc_profile_json(w, ctx, name_frame, &names);
    program_json(w, ctx);
    hkc_json_end(w);
    const hkc_profile_writer by = {.name = name_frame, .user = &names};
    const int lost = hkc_mapped_json(w, &by);
    if (!error) error = lost;
    hkc_report_json_end(w);
    pthread_mutex_unlock(&writing);
    return error;
}

static pid_t started; /* the process that began; not those that it forked */
static bool forked(void)
{
    return getpid() != started && !strstr(hks_settings_get()->profile, "%p");
}

/* number 0 = nothing behind the name. A forked child whose name would be its parent's has its own number
 * behind that, too. false = too long. */
static bool name_file(char out[HKC_FILE_NAME], unsigned number)
{
    const size_t size = HKC_FILE_NAME;
    if (hkc_file_of_process(hks_settings_get()->profile, getpid(), out)) return false;
    size_t n = strlen(out);
    if (forked()) n += (size_t)snprintf(out + n, size - n, ".%ld", (long)getpid());
    if (n < size && number != 0) n += (size_t)snprintf(out + n, size - n, ".%u", number);
    return n < size;
}

static hkc_stream stream = {.fd = -1}; /* that the name means, such as /dev/stdout */

/* Programs close their standard output before the last profile comes, or write what is left in a buffer after it. */
static int open_file(hkc_file *file, const char *target)
{
    const int beside = hkc_stream_now(&stream);
    if (beside < 0) return hkc_file_open(file, target, 0666);
    file->part[0] = '\0';
    file->fd = fcntl(beside, F_DUPFD_CLOEXEC, 0);
    return file->fd >= 0 ? 0 : errno;
}

/* Into the file of the settings; with a number, beside it. */
static void write_file(unsigned number)
{
    char target[HKC_FILE_NAME];
    hkc_file file;
    hkc_json w;
    hkc_pipe quiet;
    hkc_pipe_begin(&quiet);
    int error = name_file(target, number) ? 0 : ENAMETOOLONG;
    if (!error) error = number == 0 ? open_file(&file, target) : hkc_file_open(&file, target, 0666);
    if (!error) {
        hkc_json_open_fd(&w, file.fd);
        const int lost = put_json(NULL, &w);
        const int failed = hkc_json_close(&w);
        error = hkc_file_close(&file, failed ? failed : lost);
    }
    hkc_pipe_end(&quiet, error);
    if (error) hks_report_failed("profile", target, error);
}

/* ---- While the program runs ----------------------------------------------------------------------- */

static unsigned written; /* beside the file, by this process */

static void signalled(void *unused)
{
    (void)unused;
    write_file(++written);
}

void hks_profile_try(void)
{
    char target[HKC_FILE_NAME];
    const hks_settings *settings = hks_settings_get();
    started = getpid();
    if (hks_settings_profile(settings) && !profiled) hks_report_line("profile: no memory for it");
    if (*settings->profile == '\0') return;
    hkc_stream_keep(&stream, hkc_file_descriptor(settings->profile));
    if (name_file(target, 0)) hks_report_try("profile", target);
    else hks_report_failed("profile", settings->profile, ENAMETOOLONG);
}

void hks_profile_listen(void)
{
    const hks_settings *settings = hks_settings_get();
    const hkc_live_options options = {.place = *settings->live != '\0' ? settings->live : NULL,
                                      .signal = settings->signal,
                                      .report = put_json,
                                      .signalled = signalled};
    char error[HKC_LIVE_ERROR];
    if (!hkc_live_begin(&options, error)) hks_report_line(error);
}

bool hks_profile_in_child(void)
{
    const hks_settings *settings = hks_settings_get();
    if (*settings->live == '\0' && settings->signal == 0) return false;
    hkc_live_in_child();
    /* Another thread may have been about to change them: their pages are lost. */
    pthread_mutex_init(&writing, NULL);
    names = (hkc_names){0};
    written = 0;
    return true;
}

void hks_profile_end(void)
{
    hkc_live_end();
    if (profiled && *hks_settings_get()->profile != '\0' && !forked()) write_file(0);
}
