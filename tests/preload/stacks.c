/* stacks WHAT: allocates in functions that a profile has to name. Prints "done"; 2 = unknown WHAT. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa)) /* nor a copy with another name */
#endif

/* What keeps the calls of the functions below from being jumps. */
static void *volatile last;

OWN static void keep(size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        last = malloc(n);
        memset(last, 1, n);
    }
}

OWN static void keep_small(void)
{
    keep(3000, 1024);
    last = NULL;
}

OWN static void keep_large(void)
{
    keep(30, 1 << 20);
    last = NULL;
}

OWN static void churn(void)
{
    for (int i = 0; i < 20000; i++) {
        last = malloc(4096);
        free(last);
    }
    last = NULL;
}

static int known(void)
{
    keep_small();
    keep_large();
    churn();
    return 0;
}

/* ---- Threads, fork, exec -------------------------------------------------------------------------- */

OWN static void *thread_body(void *unused)
{
    keep_small();
    last = NULL;
    return unused;
}

static int threads(void)
{
    for (int round = 0; round < 5; round++) {
        pthread_t all[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&all[i], NULL, thread_body, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(all[i], NULL);
    }
    return 0;
}

OWN static void in_child(void)
{
    keep(10, 1 << 20);
    last = NULL;
}

static int forks(void)
{
    keep_large();
    const pid_t child = fork();
    if (child == 0) {
        in_child();
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int executes(char *program)
{
    keep_large();
    return execl(program, program, "known", (char *)NULL);
}

/* ---- Other stacks --------------------------------------------------------------------------------- */

static ucontext_t first, second;

OWN static void coroutine(void)
{
    keep_large();
    last = NULL;
}

static int contexts(void)
{
    static char stack[256 << 10];
    getcontext(&second);
    second.uc_stack.ss_sp = stack;
    second.uc_stack.ss_size = sizeof stack;
    second.uc_link = &first;
    makecontext(&second, coroutine, 0);
    swapcontext(&first, &second);
    return 0;
}

/* ---- Unwind tables that lie ----------------------------------------------------------------------- */

#ifdef __x86_64__
/* A frame of nothing but itself. */
extern uintptr_t lie_words[4];
uintptr_t lie_words[4] = {1, 2, 3, 4};

/* A function that calls keep_large, with rbp as it says and with that for its caller's frame. */
#define LIE(name, rbp, says)                                                                                 \
    void name(void);                                                                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"              \
            "pushq %rbp\n" rbp ", %rbp\n" says "\ncall call_keep\npopq %rbp\nret\n"                          \
            ".cfi_endproc\n.size " #name ", .-" #name "\n")

void call_keep(void);
OWN void call_keep(void)
{
    keep_large();
    last = NULL;
}

LIE(lie_wild, "movabsq $0x10", ".cfi_def_cfa %rbp, 16");
LIE(lie_high, "movabsq $0x7fffffffffff0000", ".cfi_def_cfa %rbp, 16");
LIE(lie_far, "movabsq $0", ".cfi_def_cfa %rsp, 0x7000000");
LIE(lie_odd, "movabsq $0", ".cfi_def_cfa %rsp, 19");
LIE(lie_next, "movabsq $0", ".cfi_def_cfa %rsp, 4104");
LIE(lie_saved, "movabsq $0", ".cfi_def_cfa %rsp, 16\n.cfi_offset %rbp, -0x40000000");
LIE(lie_data, "leaq lie_words(%rip)", ".cfi_def_cfa %rbp, 16");

static int lies(void)
{
    lie_wild();
    lie_high();
    lie_far();
    lie_odd();
    lie_next();
    lie_saved();
    lie_data();
    return 0;
}
#else
static int lies(void)
{
    return 0;
}
#endif

/* Until standard input ends: a program that is looked at while it runs. */
static int waits(void)
{
    char c;
    keep_large();
    puts("waiting");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) == 1)
        keep_small();
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int status = 2;
    if (strcmp(what, "known") == 0) status = known();
    if (strcmp(what, "threads") == 0) status = threads();
    if (strcmp(what, "fork") == 0) status = forks();
    if (strcmp(what, "exec") == 0) status = executes(argv[0]);
    if (strcmp(what, "context") == 0) status = contexts();
    if (strcmp(what, "lies") == 0) status = lies();
    if (strcmp(what, "wait") == 0) status = waits();
    if (status == 0) puts("done");
    return status;
}
