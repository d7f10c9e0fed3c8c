/* sandbox CALL...: a program that allows itself these system calls, and those of its own, and is killed at
 * any other. Its threads begin afterwards. With SANDBOX_CORE, a shared context serves it, which is made
 * before; else malloc does. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SANDBOX_CORE
#include <hakmem/hakmem.h>
static hak_ctx *heap;
#define TAKE(n) hak_alloc(heap, n)
#define GROW(p, n) hak_realloc(heap, p, n)
#define GIVE(p) hak_free(heap, p)
#define TRIM() hak_ctx_trim(heap)
#else
#include <malloc.h>
#define TAKE(n) malloc(n)
#define GROW(p, n) realloc(p, n)
#define GIVE(p) free(p)
#define TRIM() malloc_trim(0)
#endif

enum { MOST = 64, THREADS = 4, ROUNDS = 8, TURNS = 100, BLOCKS = 200 };

typedef struct call {
    const char *name;
    unsigned number;
} call;

#define CALL(name)                                                                                           \
    {                                                                                                        \
#name, SYS_##name                                                                                    \
    }
/* What an allocator on Linux could want. */
static const call known[] = {
    CALL(mmap),          CALL(munmap),         CALL(mremap),      CALL(mprotect),   CALL(madvise),
    CALL(gettid),        CALL(getpid),         CALL(tgkill),      CALL(nanosleep),  CALL(futex),
    CALL(openat),        CALL(read),           CALL(write),       CALL(close),      CALL(clock_nanosleep),
    CALL(fstat),         CALL(fcntl),          CALL(sched_yield), CALL(newfstatat), CALL(clock_gettime),
    CALL(rt_sigpending), CALL(rt_sigprocmask),
};
/* What threads want of the C library, and the end of the program. */
static const unsigned own[] = {
    SYS_mmap,   SYS_munmap,       SYS_mprotect,       SYS_madvise, SYS_write,
    SYS_exit,   SYS_exit_group,   SYS_rt_sigprocmask, SYS_clone,   SYS_set_robust_list,
    SYS_futex,  SYS_rt_sigreturn, SYS_rt_sigaction,
#ifdef SANDBOX_CORE
    SYS_brk,    SYS_getrandom, /* of libc's malloc, which pthread_create calls */
#endif
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
};

static struct sock_filter filter[4 * MOST];
static unsigned short length;

static void add(unsigned code, unsigned k, unsigned char yes, unsigned char no)
{
    filter[length++] = (struct sock_filter){(unsigned short)code, yes, no, k};
}

static void allow(unsigned number)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static int allow_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        allow(known[i].number);
        return 0;
    }
    return -1;
}

static void *work(void *blocks)
{
    void **shared = blocks;
    for (int turn = 0; turn < TURNS; turn++) {
        void *mine[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            mine[i] = TAKE(16 + (size_t)(i * turn) % 5000);
        for (int i = 0; i < BLOCKS; i++) { /* half of them go to whoever comes next, and are freed there */
            void *before = mine[i];
            if (i % 2 == 0) before = __atomic_exchange_n(&shared[i], before, __ATOMIC_ACQ_REL);
            GIVE(before);
        }
    }
    return NULL;
}

static void large(void)
{
    for (int i = 0; i < 20; i++) {
        char *p = TAKE((size_t)3 << 20);
        p = p ? GROW(p, (size_t)9 << 20) : NULL;
        if (p) memset(p, 1, (size_t)9 << 20);
        GIVE(p);
    }
}

int main(int argc, char **argv)
{
    static void *shared[BLOCKS];
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        allow(own[i]);
    for (int i = 1; i < argc; i++) {
        if (i < MOST && allow_by_name(argv[i]) == 0) continue;
        fprintf(stderr, "sandbox: unknown call %s\n", argv[i]);
        return 2;
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
#ifdef SANDBOX_CORE
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = true;
    heap = hak_ctx_new(NULL, &options);
#endif
    const struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        perror("sandbox: seccomp");
        return 77;
    }
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, work, shared) != 0) return 3;
        work(shared);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    large();
    TRIM();
    static const char done[] = "done\n";
    return write(STDOUT_FILENO, done, sizeof done - 1) == (ssize_t)sizeof done - 1 ? 0 : 1;
}
