/* Programs that hak_wasmtime_module_apart starts: compiler WAY. The first ways compile; the others are wrong, as a
 * program of a user may be. */
#define _GNU_SOURCE
#include "apart.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static wasm_config_t *config(void)
{
    wasm_config_t *c = wasm_config_new();
    wasmtime_config_parallel_compilation_set(c, false);
    return c;
}

static int compile(void)
{
    return hak_wasmtime_compile_main(config());
}

static int with_fuel(void)
{
    wasm_config_t *c = config();
    wasmtime_config_consume_fuel_set(c, true);
    return hak_wasmtime_compile_main(c);
}

static int prints(void)
{
    for (int i = 0; i < 100000; i++)
        printf("a line for nobody\n");
    fflush(stdout);
    fprintf(stderr, "and one more\n");
    return compile();
}

/* Only a superuser may. */
static int in_many_groups(void)
{
    enum { GROUPS = 3000 };
    static gid_t groups[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        groups[i] = (gid_t)(100000 + i);
    if (setgroups(GROUPS, groups) != 0) fprintf(stderr, "not in many groups\n");
    return compile();
}

static int without_config(void)
{
    return hak_wasmtime_compile_main(NULL);
}

/* ---- Ends before it compiles ---- */

static int ends(void)
{
    return 0;
}

static int fails(void)
{
    printf("\nno \tsuch\x1b[31m thing\nand more\n");
    return 3;
}

static int fails_at_length(void)
{
    for (int i = 0; i < 10000; i++)
        putchar('l');
    return 3;
}

static int crashes(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 0;
}

static _Noreturn int waits(void)
{
    for (;;)
        pause();
}

/* ---- Begins ---- */

static void put(const void *bytes, size_t n, off_t at)
{
    if (pwrite(STDIN_FILENO, bytes, n, at) != (ssize_t)n) _exit(9);
}

static void begin(void)
{
    put(HKW_BEGUN, HKW_MARK_BYTES, 0);
}

static int begins_and_waits(void)
{
    begin();
    return waits();
}

static int begins_and_ends(void)
{
    begin();
    put("half", 4, sizeof(hkw_answer));
    return 0;
}

static int begins_and_crashes(void)
{
    begin();
    put("half", 4, sizeof(hkw_answer));
    return crashes();
}

/* As Rust's allocator does. */
static int begins_and_has_no_memory(void)
{
    begin();
    fprintf(stderr, "memory allocation of 8 bytes failed\n");
    abort();
}

static int begins_and_is_killed(void)
{
    begin();
    raise(SIGKILL);
    return 0;
}

/* ---- Answers ---- */

static int nonsense(void)
{
    static const char text[] =
        "this is nothing that anybody asked for, and longer than what was there before";
    put(text, sizeof text, 0);
    return 0;
}

static int answer(uint64_t kind, const void *bytes, size_t n, uint64_t size)
{
    const hkw_answer head = {.mark = HKW_ANSWERED, .kind = kind, .size = size};
    begin();
    put(bytes, n, sizeof head);
    put(&head, sizeof head, 0);
    return 0;
}

static int nonsense_code(void)
{
    return answer(HKW_CODE_OF_MODULE, "nonsense", 8, 8);
}

static int no_code(void)
{
    return answer(HKW_CODE_OF_MODULE, "", 0, 0);
}

static int too_much(void)
{
    return answer(HKW_CODE_OF_MODULE, "nonsense", 8, UINT64_MAX);
}

static int no_kind(void)
{
    return answer(HKW_ANSWER_KINDS, "nonsense", 8, 8);
}

static int answers_and_fails(void)
{
    const int result = compile();
    return result == 0 ? 4 : result;
}

static int answers_and_waits(void)
{
    return compile() == 0 ? waits() : 0;
}

/* Tells how much there was room for. */
static int floods(void)
{
    static char bytes[1 << 16];
    lseek(STDIN_FILENO, 0, SEEK_SET);
    size_t all = 0;
    for (ssize_t n = 1; n > 0; all += n > 0 ? (size_t)n : 0)
        n = write(STDIN_FILENO, bytes, sizeof bytes);
    printf("%zu\n", all);
    return 1;
}

/* ---- Tells what it has ---- */

static int tells_descriptors(void)
{
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
    printf("are open\n");
    return 1;
}

static int tells_signals(void)
{
    sigset_t blocked;
    int ignored = 0, held = 0;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int s = 1; s < 32; s++) {
        struct sigaction a;
        ignored += sigaction(s, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
        held += sigismember(&blocked, s) == 1;
    }
    printf("%d ignored, %d blocked\n", ignored, held);
    return 1;
}

static unsigned long long limit(int resource)
{
    struct rlimit l;
    return getrlimit(resource, &l) == 0 && l.rlim_cur == l.rlim_max ? l.rlim_cur : 0;
}

static int tells_limits(void)
{
    char adjusted[16] = "";
    compile();
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    if (!file || !fgets(adjusted, sizeof adjusted, file)) return 8;
    fclose(file);
    printf("core %llu, cpu %llu, memory %d, first %d\n", limit(RLIMIT_CORE), limit(RLIMIT_CPU),
           limit(RLIMIT_AS) < RLIM_INFINITY, atoi(adjusted));
    return 1;
}

/* Another process of its group, which would run on. */
static int leaves_a_process(void)
{
    const pid_t child = fork();
    if (child == 0) return waits();
    printf("%ld\n", (long)child);
    return 1;
}

/* Another process that has left the group, for a while, and can write the answer. */
static int leaves_a_writer(bool maps)
{
    enum { WHILE_SECONDS = 20 };
    int ready[2];
    char byte;
    if (pipe(ready) != 0) return 8;
    if (maps && mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0) == MAP_FAILED) return 8;
    const pid_t child = fork();
    if (child == 0) {
        alarm(WHILE_SECONDS);
        if (setsid() < 0 || write(ready[1], "r", 1) != 1) _exit(8);
        return waits();
    }
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1) return 8;
    close(ready[0]);
    return compile();
}

static int leaves_a_descriptor(void)
{
    return leaves_a_writer(false);
}

static int leaves_a_view(void)
{
    return leaves_a_writer(true);
}

/* ---- A host of its own, which compiles the file that is named ---- */

static int host(const char *program, const char *file)
{
    static uint8_t bytes[1 << 20];
    FILE *in = fopen(file, "rb");
    if (!in) return 7;
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    hak_wasm_host_options options = HAK_WASM_HOST_OPTIONS_INIT;
    options.bounds = HAK_WASM_GUARD;
    hak_wasm_host *h = hak_wasm_host_new(&options);
    wasm_engine_t *engine = hak_wasmtime_engine_new(h, config(), NULL);
    const char *const compiler[] = {program, "compile", NULL};
    hak_wasmtime_apart_options apart = HAK_WASMTIME_APART_OPTIONS_INIT;
    apart.program = compiler;
    apart.milliseconds = apart.cpu_milliseconds = 100000;
    apart.bytes = (size_t)4 << 30;
    hak_wasmtime_module_apart(hak_wasm_host_tenant(h), engine, NULL, bytes, size, &apart, NULL, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {{"compile", compile},
                {"with_fuel", with_fuel},
                {"prints", prints},
                {"in_many_groups", in_many_groups},
                {"without_config", without_config},
                {"ends", ends},
                {"fails", fails},
                {"fails_at_length", fails_at_length},
                {"crashes", crashes},
                {"waits", waits},
                {"begins_and_waits", begins_and_waits},
                {"begins_and_ends", begins_and_ends},
                {"begins_and_crashes", begins_and_crashes},
                {"begins_and_has_no_memory", begins_and_has_no_memory},
                {"begins_and_is_killed", begins_and_is_killed},
                {"nonsense", nonsense},
                {"nonsense_code", nonsense_code},
                {"no_code", no_code},
                {"too_much", too_much},
                {"no_kind", no_kind},
                {"answers_and_fails", answers_and_fails},
                {"answers_and_waits", answers_and_waits},
                {"floods", floods},
                {"tells_descriptors", tells_descriptors},
                {"tells_signals", tells_signals},
                {"tells_limits", tells_limits},
                {"leaves_a_process", leaves_a_process},
                {"leaves_a_descriptor", leaves_a_descriptor},
                {"leaves_a_view", leaves_a_view}};
    if (argc == 3 && strcmp(argv[1], "host") == 0) return host(argv[0], argv[2]);
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0) return ways[i].run();
    fprintf(stderr, "compiler: no such way\n");
    return 6;
}
