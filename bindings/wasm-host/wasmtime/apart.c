/* The host's side of a module that another program compiles: request, answer, and what went wrong. */
#define _GNU_SOURCE
#include "apart.h"
#include "process.h"

#include "common/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 4096, LINE_MOST = 200, ERROR_MOST = 512 };

const char *hkw_apart_begin(hkw_apart *a, const hak_wasmtime_apart_options *given)
{
    memset(a, 0, sizeof *a);
    if (!given || !hak_sized_copy(&a->options, sizeof a->options, given))
        return "hakmem: there are no options, or this library does not know them";
    if (!a->options.program || !a->options.program[0])
        return "hakmem: hak_wasmtime_apart_options.program names no program";
    if (a->options.milliseconds == 0) a->options.milliseconds = HAK_WASMTIME_APART_MILLISECONDS;
    if (a->options.cpu_milliseconds == 0) a->options.cpu_milliseconds = HAK_WASMTIME_APART_CPU_MILLISECONDS;
    if (a->options.bytes == 0) a->options.bytes = HAK_WASMTIME_APART_BYTES;
    return NULL;
}

__attribute__((format(printf, 3, 4))) static wasmtime_error_t *
fail(hkw_apart *a, hak_wasmtime_apart_outcome outcome, const char *format, ...)
{
    char text[ERROR_MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    a->info.outcome = outcome;
    return wasmtime_error_new(text);
}

/* ---- Files in memory ----------------------------------------------------------------------------- */

/* Returns a descriptor that is none of the three which it becomes in the program, or -1 with errno. */
static int new_file(const char *name)
{
    const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || file > STDERR_FILENO) return file;
    const int higher = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(file);
    errno = error;
    return higher;
}

/* The file has this size for good: a program that writes without end takes no more memory. */
static int set_size(int file, size_t size)
{
    hkc_pipe p;
    hkc_pipe_begin(&p);
    const int result = ftruncate(file, (off_t)size);
    hkc_pipe_end(&p, result != 0 ? errno : 0);
    return result != 0 ? -1 : fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
}

/* Returns 0 or errno. */
static int write_request(int file, const hkw_request *request, const uint8_t *copy, const uint8_t *bytes)
{
    /* A limit beyond the memory of all machines, so that no number is too large for a size of a file. */
    const uint64_t most = (uint64_t)1 << 44;
    uint64_t size = sizeof *request + request->copy_size + request->size;
    const uint64_t answer = sizeof(hkw_answer) + (request->bytes < most ? request->bytes : most);
    if (size < answer) size = answer;
    int error = hkc_pipe_write_all(file, request, sizeof *request);
    if (!error) error = hkc_pipe_write_all(file, copy, request->copy_size);
    if (!error) error = hkc_pipe_write_all(file, bytes, request->size);
    if (!error && set_size(file, size) != 0) error = errno;
    return error;
}

/* The first line that the program printed, without control characters. */
static void first_line(int file, char line[LINE_MOST])
{
    char text[OUTPUT_BYTES];
    const ssize_t got = pread(file, text, sizeof text, 0);
    size_t n = 0;
    for (ssize_t i = 0; i < got && n < LINE_MOST - 1; i++) {
        if (text[i] == '\0' || (text[i] == '\n' && n > 0)) break;
        if ((unsigned char)text[i] >= ' ' && text[i] != 127) line[n++] = text[i];
    }
    line[n] = '\0';
}

static bool has_printed(int file, const char *word)
{
    char text[OUTPUT_BYTES + 1];
    const ssize_t got = pread(file, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return strstr(text, word) != NULL;
}

/* ---- What went wrong ----------------------------------------------------------------------------- */

static wasmtime_error_t *too_long(hkw_apart *a)
{
    return fail(a, HAK_WASMTIME_APART_TIME, "hakmem: the module takes more than %u ms to compile",
                a->options.milliseconds);
}

static wasmtime_error_t *too_large(hkw_apart *a)
{
    return fail(a, HAK_WASMTIME_APART_MEMORY, "hakmem: the module takes more than %zu bytes to compile",
                a->options.bytes);
}

static bool is_marked(const char mark[HKW_MARK_BYTES], const char *with)
{
    return memcmp(mark, with, HKW_MARK_BYTES) == 0;
}

/* The program ended without an answer that holds. */
static wasmtime_error_t *without_answer(hkw_apart *a, const hkw_end *end, const char mark[HKW_MARK_BYTES],
                                        int output)
{
    char line[LINE_MOST], how[64] = "ended";
    const char *name = a->options.program[0];
    const int signal = !end->late && WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
    const bool timed = is_marked(mark, HKW_TIMED);
    const bool begun = timed || is_marked(mark, HKW_BEGUN) || is_marked(mark, HKW_ANSWERED);
    if (begun && end->late) return too_long(a);
    if (timed)
        return fail(a, HAK_WASMTIME_APART_TIME,
                    "hakmem: the module takes more than %u ms of a processor to compile",
                    a->options.cpu_milliseconds);
    /* That is how Rust's allocator ends a process. */
    if (begun && (signal == SIGABRT || end->taken) && has_printed(output, "memory allocation of "))
        return too_large(a);
    if (signal) snprintf(how, sizeof how, "was ended by signal %d", signal);
    else if (end->late) snprintf(how, sizeof how, "began nothing in %u ms", a->options.milliseconds);
    else if (!end->taken) snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(end->status));
    first_line(output, line);
    return fail(a, begun ? HAK_WASMTIME_APART_DIED : HAK_WASMTIME_APART_START,
                "hakmem: \"%.255s\" %s and has compiled nothing%s%s", name, how, line[0] ? ": " : "", line);
}

bool hkw_is_no_memory(const wasmtime_error_t *error)
{
    /* ENOMEM, as Rust prints it. At the end, because names of the module may be before. */
    static const char printed[] = "(os error 12)";
    const size_t n = sizeof printed - 1;
    wasm_name_t text;
    wasmtime_error_message(error, &text);
    const bool found = text.size >= n && memcmp(text.data + text.size - n, printed, n) == 0;
    wasm_byte_vec_delete(&text);
    return found;
}

wasmtime_error_t *hkw_apart_not_taken(hkw_apart *a, wasmtime_error_t *why)
{
    const bool no_memory = hkw_is_no_memory(why);
    wasm_name_t text;
    wasmtime_error_message(why, &text);
    wasmtime_error_t *error =
        no_memory ? fail(a, HAK_WASMTIME_APART_START, "hakmem: no memory for a compiled module: %.*s",
                         (int)text.size, text.data)
                  : fail(a, HAK_WASMTIME_APART_ENGINE, "hakmem: \"%.255s\" compiles for another engine: %.*s",
                         a->options.program[0], (int)text.size, text.data);
    wasm_byte_vec_delete(&text);
    wasmtime_error_delete(why);
    return error;
}

/* A text of any length, as wasmtime made it. */
static wasmtime_error_t *refused(hkw_apart *a, const hkw_code *text)
{
    char *copy = malloc(text->size + 1);
    if (!copy) return fail(a, HAK_WASMTIME_APART_REFUSED, "hakmem: wasmtime refuses the module");
    memcpy(copy, text->bytes, text->size);
    copy[text->size] = '\0';
    wasmtime_error_t *error = wasmtime_error_new(copy);
    free(copy);
    a->info.outcome = HAK_WASMTIME_APART_REFUSED;
    return error;
}

/* ---- The answer ---------------------------------------------------------------------------------- */

void hkw_code_end(hkw_code *code)
{
    if (code->view) munmap(code->view, code->view_size);
    *code = (hkw_code){0};
}

/* Maps what the file has behind the answer. Returns 0 or errno. */
static int map_answer(int file, const hkw_answer *answer, hkw_code *code)
{
    const size_t size = sizeof *answer + (size_t)answer->size;
    void *view = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (view == MAP_FAILED) return errno;
    *code = (hkw_code){.kind = (hkw_answer_kind)answer->kind,
                       .bytes = (uint8_t *)view + sizeof *answer,
                       .size = (size_t)answer->size,
                       .view = view,
                       .view_size = size};
    return 0;
}

/* An answer that the program itself ended after, and that the file has room for. */
static bool is_answer(int file, const hkw_answer *answer, const hkw_end *end)
{
    const off_t size = lseek(file, 0, SEEK_END);
    return !end->late && end->status == 0 && is_marked(answer->mark, HKW_ANSWERED) &&
           answer->kind < HKW_ANSWER_KINDS && size >= (off_t)sizeof *answer &&
           answer->size <= (uint64_t)size - sizeof *answer;
}

static wasmtime_error_t *read_answer(hkw_apart *a, const hkw_end *end, int file, int output, hkw_code *code)
{
    hkw_answer answer = {0};
    /* What the program started may have left its group, and live and write. Nothing is read before this. */
    const bool stays = fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0;
    const bool whole = pread(file, &answer, sizeof answer, 0) == (ssize_t)sizeof answer;
    a->info.milliseconds = end->milliseconds;
    a->info.cpu_milliseconds = end->cpu_milliseconds;
    if (!whole || !is_answer(file, &answer, end)) return without_answer(a, end, answer.mark, output);
    if (!stays)
        return fail(a, HAK_WASMTIME_APART_DIED,
                    "hakmem: \"%.255s\" has ended, but what it started can change its answer",
                    a->options.program[0]);
    if (answer.kind == HKW_NO_MEMORY) return too_large(a);
    a->info.bytes = (size_t)answer.peak;
    const int error = map_answer(file, &answer, code);
    if (error)
        return fail(a, HAK_WASMTIME_APART_START, "hakmem: no memory for a compiled module: %s",
                    strerror(error));
    if (code->kind != HKW_TEXT) return NULL;
    wasmtime_error_t *text = refused(a, code);
    hkw_code_end(code);
    return text;
}

/* ---- Both ---------------------------------------------------------------------------------------- */

wasmtime_error_t *hkw_apart_compile(hkw_apart *a, const hak_wasm_host *host, const hkw_module *copy,
                                    const uint8_t *bytes, size_t size, hkw_code *code)
{
    const hak_wasmtime_apart_options *o = &a->options;
    const hkw_request request = {.mark = HKW_ASKED,
                                 .copy_size = copy->bytes ? copy->size : 0,
                                 .size = size,
                                 .slot = hak_wasm_slot_bytes(host),
                                 .guard = hak_wasm_guard_bytes(host),
                                 .milliseconds = o->milliseconds,
                                 .cpu_milliseconds = o->cpu_milliseconds,
                                 .bytes = o->bytes};
    const int file = new_file("hakmem-compile"), output = file < 0 ? -1 : new_file("hakmem-compile-output");
    int error = file < 0 || output < 0 || set_size(output, OUTPUT_BYTES) != 0 ? errno : 0;
    if (!error) error = write_request(file, &request, copy->bytes, bytes);
    hkw_end end;
    wasmtime_error_t *result = NULL;
    if (error) {
        result = fail(a, HAK_WASMTIME_APART_START, "hakmem: no file in memory for a module to compile: %s",
                      strerror(error));
    } else if ((error = hkw_process_run(o->program, file, output, o->milliseconds, &end)) != 0) {
        result = fail(a, HAK_WASMTIME_APART_START, "hakmem: \"%.255s\" cannot be started: %s", o->program[0],
                      strerror(error));
    } else {
        result = read_answer(a, &end, file, output, code);
    }
    if (file >= 0) close(file);
    if (output >= 0) close(output);
    return result;
}
