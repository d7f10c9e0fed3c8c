/* hakmem, reports: write what the contexts of a host hold to a file that the command hakmem reads.
 *
 *       hak_report_path("vm.json", &ctx, 1, NULL);      // then: hakmem report vm.json, hakmem html vm.json
 *
 * STABILITY  Experimental: functions and structs may change with each minor version.
 *
 * LIBRARY    libhakmem-report, beside libhakmem: CMake target hakmem::report, pkg-config hakmem-report. The
 *            core does not need this library, and the library calls nothing but the core's public functions.
 *
 * WHAT IS WRITTEN  The process (command line, pid, resident memory), and for each context its statistics, its
 *            labels, what its learner decided, and its profile if it ever had one (hakmem/profile.h). The
 *            format is "hakmem-report/1", docs/internals/report-format.md. `hakmem pprof`, `folded` and
 *            their like make other formats of the file.
 *
 * FRAMES     The frames of a profile are numbers. The host names them, in one of two ways:
 *              - a table of frames (hak_frames): the host adds function, file and line, and gets a number
 *              - hak_report_options.frame: a function of the host that names the host's own numbers
 *            A frame that neither of them names is an address of machine code. The library names such a
 *            frame by the tables of symbols, and `hakmem` adds the line where there is debug information.
 *
 *       static size_t stack(void *user, hak_ctx *ctx, hak_site site, uintptr_t *out, size_t room)
 *       {
 *           size_t n = 0;
 *           for (call *c = vm->innermost; c && n < room; c = c->outer, n++)
 *               out[n] = hak_frames_add(vm->frames, c->function, c->file, c->line);
 *           return n;
 *       }
 *       ...
 *       profile.frames = stack;                          // hak_profile_options, for hak_profile_start
 *       report.frames = vm->frames;                      // hak_report_options
 *
 * MEMORY     A report takes pages of the system and some 40 KiB of stack, and nothing from a context. It takes
 *            nothing from malloc except the buffer of a stream that has none yet.
 *
 * CONVENTIONS are those of hakmem.h. hakmem/sites.h (labels by the function that asked) and hakmem/reserve.h
 * (memory for the error itself) belong to the same library. Since 0.1. */
#ifndef HAKMEM_REPORT_H
#define HAKMEM_REPORT_H

#include <hakmem/profile.h>
#include <hakmem/reserve.h>
#include <hakmem/sites.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Frames -------------------------------------------------------------------------------------- */

/* What is known of a frame. */
typedef struct hak_report_frame {
    const char *function; /* NULL = not known: the number is shown */
    const char *file;     /* NULL = not known */
    const char *module;   /* library, package or script; NULL = not known */
    int line;             /* 0 = not known */
    bool native;          /* machine code; else of an interpreter */
} hak_report_frame;

/* Numbers for frames of an interpreter. */
typedef struct hak_frames hak_frames;

/* The number of a frame for which the table has no room: reports show it as "(no room for the frame)". */
#define HAK_FRAME_LOST ((uintptr_t)1 << 63)

/* Makes an empty table for `most` different frames; 0 = 65536, and at most 2^24. NULL = no memory, or `most`
 * is too large. Cost: two calls of the system. */
HAK_API hak_frames *hak_frames_new(size_t most);
/* Returns the number of this function, file and line: the same for equal texts, for as long as the table is
 * there. The texts are copied, up to 4095 bytes each; NULL = not known. HAK_FRAME_LOST = the table is full,
 * or there is no memory. Numbers are above 2^63: no address of code is. Cost: a hash of the texts, a lock and
 * a comparison, about 500 instructions for texts of 40 bytes; a host that keeps the number beside its code
 * pays once. [any thread; also in hak_profile_options.frames] */
HAK_API uintptr_t hak_frames_add(hak_frames *frames, const char *function, const char *file, int line);
/* Finds what was added under a number. Returns false if the number is not of this table; *out is then as it
 * was. The texts stay until the table is deleted. [any thread] */
HAK_API bool hak_frames_find(const hak_frames *frames, uintptr_t frame, hak_report_frame *out);
/* Returns how many frames the table has; *lost = how often there was no room. lost may be NULL.
 * [any thread] */
HAK_API size_t hak_frames_count(const hak_frames *frames, size_t *lost);
/* Deletes the table. NULL is fine. Profiles that have numbers of this table show the bare numbers
 * afterwards. */
HAK_API void hak_frames_delete(hak_frames *frames);

/* Gives the stack of machine code, for hak_profile_options.frames: from the site of the allocation outwards,
 * or from the functions of hakmem if the allocation has no site. `user` is not used. On platforms other than
 * Linux on x86-64 and aarch64 the stack is the site alone. Cost: a look-up for each frame; about 1 us for a
 * frame that is met first. [any thread] */
HAK_API size_t hak_native_frames(void *user, hak_ctx *ctx, hak_site site, uintptr_t *frames, size_t room);

/* Sets sample_made and sample_gone of the options, so that tracers (bpftrace, gdb, OpenTelemetry's profiler) see
 * each sample of the profile. Call it before hak_profile_start. The USDT probes are otel_memory:alloc (address,
 * bytes, the bytes that the sample stands for) and otel_memory:free (address). They are in libhakmem-report, or in
 * the program where the library is static. Returns 0 or an errno, with nothing changed: ENOTSUP = the system has no
 * such probes, which are for Linux on x86-64 and aarch64; EINVAL = options NULL or broken, or the host has
 * functions there. Cost: some ten instructions for each sample where no tracer has attached. [any thread] */
HAK_API int hak_report_probes(hak_profile_options *options);

/* ---- Reports ------------------------------------------------------------------------------------- */

typedef enum hak_report_form {
    HAK_REPORT_JSON, /* "hakmem-report/1" */
    HAK_REPORT_TEXT  /* for people: a table of labels, and where the memory is; no profile */
} hak_report_form;

/* Fills in *out, which is zero before, with what the host knows of a frame of ctx. Returns false if the host
 * does not know the frame. The texts stay until the report is written. Must not call into ctx. */
typedef bool hak_report_frame_fn(void *user, const hak_ctx *ctx, uintptr_t frame, hak_report_frame *out);

typedef struct hak_report_options {
    size_t size;                /* sizeof(hak_report_options), by HAK_REPORT_OPTIONS_INIT */
    hak_report_form form;       /* default HAK_REPORT_JSON */
    const char *runtime;        /* what runs, "myvm"; NULL = "c" */
    const char *version;        /* of the runtime; NULL = "" */
    const hak_frames *frames;   /* names numbers of this table; NULL = no table */
    hak_report_frame_fn *frame; /* is asked first; NULL = nobody */
    void *user;                 /* for `frame` */
} hak_report_options;
#define HAK_REPORT_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(hak_report_options), HAK_REPORT_JSON, NULL, NULL, NULL, NULL, NULL                            \
    }

/* Takes all n bytes. Returns 0, or an errno, after which the function is not called again. */
typedef int hak_report_put_fn(void *to, const char *bytes, size_t n);

/* Writes a report of `count` contexts to a file. The file at `path` stays as it was until the report is whole
 * and replaces it; a pipe, a device or /dev/stdout is written to directly. options NULL = defaults.
 *
 * Returns 0 or an errno. EINVAL = broken options, a context that is NULL, or no context; nothing is written.
 * ENOMEM = the report is written, but for want of pages it lacks marks, or frames or names of some stacks.
 * Any other errno is what the system says of the path or of the write; the partial file is removed. If the
 * symbols of a library cannot be read, its frames are shown as addresses, which is no error.
 *
 * No other thread may use a context meanwhile, unless the context is shared. Not for signal handlers. Cost:
 * that of hak_labels_stats, a step for each stack, and a pass over the table of symbols of each library that
 * has frames which nobody named. */
HAK_API int hak_report_path(const char *path, hak_ctx *const *contexts, size_t count,
                            const hak_report_options *options);
/* Writes the same to a stream, which is flushed and stays open. EIO = the stream does not say why. */
HAK_API int hak_report_stream(FILE *out, hak_ctx *const *contexts, size_t count,
                              const hak_report_options *options);
/* Gives the same to a function of the host, in pieces of up to 4 KiB. */
HAK_API int hak_report_put(hak_report_put_fn *put, void *to, hak_ctx *const *contexts, size_t count,
                           const hak_report_options *options);

#ifdef __cplusplus
}
#endif
#endif
