/* Modules of strangers under wasmtime, compiled in a process of their own that has a limit on time and memory.
 *
 *   Nobody can tell wasmtime to stop compiling, and some modules of a few KB keep it busy for minutes. So the
 *   host starts a program that compiles one module and ends, and kills it at the limit. That program may be
 *   the host's own:
 *
 *       static wasm_config_t *config(void) ...                 // the same for both
 *
 *       int main(int argc, char **argv)
 *       {
 *           if (argc == 2 && strcmp(argv[1], "--compile") == 0) return hak_wasmtime_compile_main(config());
 *           ...
 *           wasm_engine_t *engine = hak_wasmtime_engine_new(host, config(), &error);
 *           static const char *const program[] = {"/proc/self/exe", "--compile", NULL};
 *           hak_wasmtime_apart_options options = HAK_WASMTIME_APART_OPTIONS_INIT;
 *           options.program = program;
 *           options.cpu_milliseconds = 1000;
 *           hak_wasmtime_module *module =
 *               hak_wasmtime_module_apart(tenant, engine, linker, bytes, size, &options, &info, &error);
 *
 * TRUST
 *   What the program answers is machine code, which the host runs: trust the program as you trust the host.
 *   No process of another user, and no guest, can change the answer on its way. No process at all can change
 *   it once the host has begun to read it. The compiler itself is as trusted as it is when the host compiles;
 *   but a crash of the compiler ends only the program.
 *
 * STABILITY  Experimental, as hakmem/wasm_wasmtime.h.
 *
 * CONVENTIONS
 *   Units      sizes are bytes, times are milliseconds.
 *   Threads    any thread may call any function, several at the same time. Each call starts a process of its
 *              own, so all calls together may take the limits of one as often as there are calls.
 *   Errors     a wasmtime_error_t that the caller deletes. No call leaves a descriptor or memory behind, nor
 *              a process, with two exceptions. What the program starts may leave the program's process group.
 *              And the host may not kill a program that becomes another user's (set-user-ID): then the call
 *              returns 0.1 s after its limit, and the program stays a child of the host.
 *   Structs    that begin with their size may come from another version of this header, as in hakmem.h.
 *   System     Linux with memfd_create. Where there is no pidfd_open (Linux 5.3), the end of a program is
 *              noticed up to 10 ms late. Where the program has no /proc, options.bytes limits all of its
 *              address space.
 *   Since      0.1.
 */
#ifndef HAKMEM_WASM_WASMTIME_APART_H
#define HAKMEM_WASM_WASMTIME_APART_H

#include <hakmem/wasm_wasmtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the program may take where the options say 0. */
#define HAK_WASMTIME_APART_MILLISECONDS 10000
#define HAK_WASMTIME_APART_CPU_MILLISECONDS 5000
#define HAK_WASMTIME_APART_BYTES (512 << 20)

typedef struct hak_wasmtime_apart_options {
    size_t size;                /* sizeof(hak_wasmtime_apart_options), by HAK_WASMTIME_APART_OPTIONS_INIT */
    const char *const *program; /* its arguments, NULL behind the last. The first is its file, which is not
                                   looked for in PATH; "/proc/self/exe" = this program */
    unsigned milliseconds;      /* from the start of the program to its end, on the clock. 0 = 10,000 */
    unsigned cpu_milliseconds;  /* of a processor, to compile. 0 = 5,000 */
    size_t bytes;               /* address space to compile, beyond what the program has when it begins; and,
                                   besides, memory for the code that it answers. 0 = 512 MiB */
    const char *folder;         /* of code that is kept, as for hak_wasmtime_module_load. NULL = none */
} hak_wasmtime_apart_options;
#define HAK_WASMTIME_APART_OPTIONS_INIT                                                                      \
    {                                                                                                        \
        sizeof(hak_wasmtime_apart_options), NULL, 0, 0, 0, NULL                                              \
    }

typedef enum hak_wasmtime_apart_outcome {
    HAK_WASMTIME_APART_DONE, /* there is a module */
    /* The module is to blame: */
    HAK_WASMTIME_APART_REFUSED, /* a limit of the tenant or wasmtime refuses it, or an import is missing */
    HAK_WASMTIME_APART_TIME,    /* it takes more time than the options allow */
    HAK_WASMTIME_APART_MEMORY,  /* it takes more memory than the options allow */
    HAK_WASMTIME_APART_DIED,    /* the program began to compile, and ended otherwise: the compiler crashed, or
                                   something killed the program, for instance the kernel for lack of memory;
                                   or another process can still change its answer */
    /* The host is to blame: */
    HAK_WASMTIME_APART_START, /* the program cannot be started, ends or waits before it calls
                                 hak_wasmtime_compile_main, or is of another hakmem; the options are wrong; the
                                 folder cannot be used; there is no descriptor or memory for the request, or
                                 in the host for the module and its code */
    HAK_WASMTIME_APART_ENGINE /* this engine does not take what the program compiled: it has another
                                 configuration or another wasmtime */
} hak_wasmtime_apart_outcome;

/* How it went, also when it failed. */
typedef struct hak_wasmtime_apart_info {
    size_t size; /* sizeof(hak_wasmtime_apart_info), set by the caller */
    hak_wasmtime_apart_outcome outcome;
    unsigned milliseconds, cpu_milliseconds; /* of the program, with its start; 0 = none was started */
    size_t bytes; /* what options.bytes limits, at most at a time; 0 = unknown: it failed, or nothing ran */
} hak_wasmtime_apart_info;
#define HAK_WASMTIME_APART_INFO_INIT                                                                         \
    {                                                                                                        \
        sizeof(hak_wasmtime_apart_info), HAK_WASMTIME_APART_DONE, 0, 0, 0                                    \
    }

/* Does what hak_wasmtime_module_load does, but lets options->program compile. The tenant's limits on modules
 * come first and start nothing. The program has this process' environment and folder, the request as its
 * standard input, no other descriptor of this process, and no signal blocked or ignored. What it prints is
 * kept, up to 4 KiB, and its first line is in the error if it fails. At a limit the program is killed with all
 * other processes of its process group. No tenant is charged with the memory that the program takes. info
 * NULL = nobody wants it. Returns NULL with an error, whose kind is in *info. Where the host ignores SIGCHLD,
 * or another thread waits for all children, the call works and tells each limit, but cpu_milliseconds is 0 and
 * an error of HAK_WASMTIME_APART_START or HAK_WASMTIME_APART_DIED does not say how the program ended.
 * Cost: that of starting the program and loading wasmtime, some 10 ms; wasmtime's to compile on one thread;
 * copies of the module and of its code. */
HAK_API hak_wasmtime_module *hak_wasmtime_module_apart(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                                       const wasmtime_linker_t *linker, const uint8_t *bytes,
                                                       size_t size, const hak_wasmtime_apart_options *options,
                                                       hak_wasmtime_apart_info *info,
                                                       wasmtime_error_t **error);

/* Compiles the module that is asked for at standard input, within the limits that are asked for there, and
 * returns what main returns. config: as the host gives to hak_wasmtime_engine_new, whose own settings are
 * made here as well; is taken over. To be called first thing in main, by a program that
 * hak_wasmtime_module_apart has started; there is no host and no engine in it. Lowers the limits of the
 * process, for good: address space, processor time, no core dump. Makes the process the first that the kernel
 * kills where memory runs out, and has it end with its parent. Uses the timers ITIMER_PROF and ITIMER_REAL,
 * and handles SIGPROF and SIGXCPU. Closes all descriptors but 0, 1 and 2 where the C library cannot do so at
 * the start (glibc before 2.34). */
HAK_API int hak_wasmtime_compile_main(wasm_config_t *config);

#ifdef __cplusplus
}
#endif
#endif
