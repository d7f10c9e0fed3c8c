/* The program's side of a module that is compiled apart: reads the request, keeps the limits, answers. */
#define _GNU_SOURCE
#include "apart.h"

#include "common/pipe.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { FILE_OF_BOTH = STDIN_FILENO, FAILED = 2 };

static int give_up(const char *why)
{
    fprintf(stderr, "hakmem: %s\n", why);
    return FAILED;
}

/* ---- Descriptors --------------------------------------------------------------------------------- */

/* Closes what the host left open: posix_spawn closes descriptors only with glibc, from 2.34 on. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0) return;
#endif
    DIR *all = opendir("/proc/self/fd");
    if (!all) return;
    for (const struct dirent *one; (one = readdir(all)) != NULL;) {
        const int file = atoi(one->d_name);
        if (file > STDERR_FILENO && file != dirfd(all)) close(file);
    }
    closedir(all);
}

/* ---- Limits -------------------------------------------------------------------------------------- */

/* A line of /proc/self/status in bytes; 0 = it cannot be read. Lines before may be long: `Groups:` is. */
static uint64_t status_bytes(const char *line)
{
    enum { PART = 4096, LINE_MOST = 64, PARTS_MOST = 4096 };
    char text[LINE_MOST + PART + 1];
    uint64_t bytes = 0;
    size_t size = 0;
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    for (int i = 0; file >= 0 && i < PARTS_MOST; i++) {
        const ssize_t got = read(file, text + size, PART);
        if (got <= 0) break;
        size += (size_t)got;
        text[size] = '\0';
        const char *at = strstr(text, line);
        if (at && strchr(at + 1, '\n')) {
            bytes = strtoull(at + strlen(line), NULL, 10) << 10;
            break;
        }
        /* The line may begin in this part and end in the next one. */
        const size_t kept = size < LINE_MOST ? size : LINE_MOST;
        memmove(text, text + size - kept, kept);
        size = kept;
    }
    if (file >= 0) close(file);
    return bytes;
}

/* A limit that is lower already stays. */
static void lower(int resource, uint64_t most)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return;
    if (limit.rlim_max > most) limit.rlim_max = most;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

static void set_timer(int timer, uint64_t milliseconds)
{
    const struct itimerval t = {
        .it_value = {(time_t)(milliseconds / 1000), (suseconds_t)(milliseconds % 1000 * 1000)}};
    setitimer(timer, &t, NULL);
}

/* What does this process harm if it takes all memory that there is? Nothing: the kernel may end it first. */
static void end_first(void)
{
    static const char most[] = "1000";
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    hkc_pipe_write_all(file, most, sizeof most - 1);
    close(file);
}

/* The host may not learn of which signal this process ended. */
static void tell_time(int signal)
{
    (void)signal;
    const ssize_t n = pwrite(FILE_OF_BOTH, HKW_TIMED, HKW_MARK_BYTES, 0);
    _exit(n == HKW_MARK_BYTES ? FAILED : FAILED + 1);
}

static void handle(int signal)
{
    struct sigaction action = {.sa_handler = tell_time};
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

/* The parent kills this process at its deadline. Where the parent cannot, the timers and limits end it. */
static void set_limits(const hkw_request *request, uint64_t address_space)
{
    enum { LATER_SECONDS = 2, LATER_MS = 1000 * LATER_SECONDS };
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(FAILED);
    end_first();
    lower(RLIMIT_CORE, 0);
    lower(RLIMIT_CPU, request->cpu_milliseconds / 1000 + LATER_SECONDS);
    const uint64_t bytes = request->bytes;
    lower(RLIMIT_AS, bytes < UINT64_MAX - address_space ? address_space + bytes : UINT64_MAX);
    handle(SIGPROF);
    handle(SIGXCPU);
    set_timer(ITIMER_PROF, request->cpu_milliseconds);
    set_timer(ITIMER_REAL, request->milliseconds + LATER_MS);
}

/* ---- The file ------------------------------------------------------------------------------------ */

static bool read_at(void *to, size_t size, off_t at)
{
    for (char *p = to; size > 0;) {
        const ssize_t n = pread(FILE_OF_BOTH, p, size, at);
        if (n <= 0) return false;
        p += n;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_at(const void *from, size_t size, off_t at)
{
    return lseek(FILE_OF_BOTH, at, SEEK_SET) == at && hkc_pipe_write_all(FILE_OF_BOTH, from, size) == 0;
}

static int answer(hkw_answer_kind kind, const void *bytes, size_t size, uint64_t peak)
{
    const hkw_answer head = {.mark = HKW_ANSWERED, .kind = kind, .size = size, .peak = peak};
    if (!write_at(bytes, size, sizeof head) || !write_at(&head, sizeof head, 0))
        return give_up("standard input takes no answer");
    return 0;
}

/* ---- Compiling ----------------------------------------------------------------------------------- */

/* As hak_wasmtime_engine_new, without a host whose slots would take address space. */
static wasm_engine_t *new_engine(const hkw_request *request, wasm_config_t *config)
{
    hkw_engine_settings(config, request->slot, request->guard);
    wasmtime_config_parallel_compilation_set(config, false);
    return wasm_engine_new_with_config(config);
}

/* As make_code() and make_without_copy() of load.c: only a valid module is worth a second try. */
static wasmtime_error_t *compile(wasm_engine_t *engine, const hkw_request *request, const uint8_t *bytes,
                                 hkw_answer_kind *kind, wasmtime_module_t **module)
{
    const uint8_t *original = bytes + request->copy_size;
    wasmtime_error_t *error = NULL;
    if (request->copy_size) {
        *kind = HKW_CODE_OF_COPY;
        error = wasmtime_module_new(engine, bytes, request->copy_size, module);
        if (!error || hkw_is_no_memory(error)) return error;
        wasmtime_error_delete(error);
        error = wasmtime_module_validate(engine, original, request->size);
    }
    *kind = HKW_CODE_OF_MODULE;
    return error ? error : wasmtime_module_new(engine, original, request->size, module);
}

static int answer_error(wasmtime_error_t *error)
{
    wasm_name_t text;
    wasmtime_error_message(error, &text);
    const int result = answer(hkw_is_no_memory(error) ? HKW_NO_MEMORY : HKW_TEXT, text.data, text.size, 0);
    wasm_byte_vec_delete(&text);
    wasmtime_error_delete(error);
    return result;
}

static int compile_and_answer(const hkw_request *request, const uint8_t *bytes, wasm_engine_t *engine,
                              uint64_t address_space)
{
    hkw_answer_kind kind;
    wasmtime_module_t *module = NULL;
    wasm_byte_vec_t code;
    wasmtime_error_t *error = compile(engine, request, bytes, &kind, &module);
    if (!error) error = wasmtime_module_serialize(module, &code);
    if (module) wasmtime_module_delete(module);
    if (error) return answer_error(error);
    const uint64_t peak = status_bytes("\nVmPeak:");
    const int result = answer(kind, code.data, code.size, peak > address_space ? peak - address_space : 0);
    wasm_byte_vec_delete(&code);
    return result;
}

/* Returns the bytes of copy and module, malloc, with the limits set; NULL with what main returns. */
static uint8_t *take_request(hkw_request *request, uint64_t *address_space, int *result)
{
    if (!read_at(request, sizeof *request, 0) ||
        memcmp(request->mark, HKW_ASKED, sizeof request->mark) != 0) {
        *result = give_up("standard input is no request of hak_wasmtime_module_apart of this version");
        return NULL;
    }
    *address_space = status_bytes("\nVmSize:");
    set_limits(request, *address_space);
    if (!write_at(HKW_BEGUN, sizeof request->mark, 0)) {
        *result = give_up("standard input takes no answer");
        return NULL;
    }
    const size_t size = (size_t)(request->copy_size + request->size);
    uint8_t *bytes = malloc(size);
    if (!bytes) {
        *result = answer(HKW_NO_MEMORY, "", 0, 0);
    } else if (!read_at(bytes, size, sizeof *request)) {
        *result = give_up("standard input has no whole request");
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

int hak_wasmtime_compile_main(wasm_config_t *config)
{
    hkw_request request;
    uint64_t address_space = 0;
    int result = FAILED;
    if (!config) return give_up("there is no configuration");
    close_others();
    uint8_t *bytes = take_request(&request, &address_space, &result);
    if (!bytes) {
        wasm_config_delete(config);
        return result;
    }
    wasm_engine_t *engine = new_engine(&request, config);
    if (engine) {
        result = compile_and_answer(&request, bytes, engine, address_space);
        wasm_engine_delete(engine);
    } else {
        result = give_up("there is no engine of this configuration");
    }
    free(bytes);
    return result;
}
