/* refuse CALL[,CALL...] PROGRAM [ARGUMENT...]: becomes the program, for which the kernel refuses these system
 * calls with EPERM, as under a filter of a container. 77 = no filters here. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} CALLS[] = {
    {"madvise", SYS_madvise},
    {"mremap", SYS_mremap},
    {"memfd_create", SYS_memfd_create},
    {"membarrier", SYS_membarrier},
};

static unsigned number_of(const char *name)
{
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strcmp(name, CALLS[i].name) == 0) return CALLS[i].number;
    return ~0u;
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    struct sock_filter code[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    for (char *name = strtok(arguments[1], ","); name; name = strtok(NULL, ",")) {
        unsigned number = number_of(name);
        if (number == ~0u || length + 3u > sizeof code / sizeof *code) {
            fprintf(stderr, "refuse: no system call '%s'\n", name);
            return 2;
        }
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("refuse: no filter of system calls here");
        return 77;
    }
    execv(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 2;
}
