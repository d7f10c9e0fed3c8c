#define _GNU_SOURCE
#include "report.h"

#include "install.h"
#include "json.h"
#include "process.h"
#include "resident.h"
#include "wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char target[4096]; /* "" = none */
static pid_t owner;       /* the process that plans; a vfork child is another that shares this memory */
static bool written;
bool hk_py_report_due;
static char shown[64]; /* the file to show on stderr */

static const char *const state_names[] = {"default", "replaced", "wrapped", "covered", "displaced"};

static void in_child(void)
{
    owner = getpid();
    written = false;
    shown[0] = '\0';
    if (!strstr(target, "%p")) target[0] = '\0';
}

void hk_py_report_plan(const char *name, bool first)
{
    if (!strstr(name, "%p") && !first) return;
    if (strlen(name) >= sizeof target) {
        fprintf(stderr, "hakmem: no report in %.60s...: the name is too long\n", name);
        return;
    }
    strcpy(target, name);
    hk_py_report_due = true;
    owner = getpid();
    pthread_atfork(NULL, NULL, in_child);
}

/* The name with %p replaced. */
static bool expand(char *out, size_t size)
{
    const char *p = strstr(target, "%p");
    int n = p ? snprintf(out, size, "%.*s%ld%s", (int)(p - target), target, (long)getpid(), p + 2)
              : snprintf(out, size, "%s", target);
    return n > 0 && (size_t)n < size;
}

static void stats_json(FILE *out)
{
    hak_stats s = {.size = sizeof s};
    if (hk_py_stats(&s) != 0) return;
    fputs(",\"stats\":", out);
    hk_py_json_size(out, "{", "live_bytes", s.live_bytes);
    hk_py_json_size(out, ",", "live_blocks", s.live_blocks);
    hk_py_json_size(out, ",", "peak_bytes", s.peak_bytes);
    hk_py_json_size(out, ",", "committed_bytes", s.committed_bytes);
    hk_py_json_size(out, ",", "metadata_bytes", s.metadata_bytes);
    hk_py_json_size(out, ",", "cached_bytes", s.cached_bytes);
    hk_py_json_size(out, ",", "released_bytes", s.released_bytes);
    hk_py_json_size(out, ",", "idle_bytes", s.idle_bytes);
    hk_py_json_size(out, ",", "big_bytes", s.big_bytes);
    hk_py_json_size(out, ",", "hard_limit", s.hard_limit);
    hk_py_json_size(out, ",", "soft_limit", s.soft_limit);
    hk_py_json_size(out, ",", "failures", (size_t)s.failures);
    hk_py_json_size(out, ",", "resident_bytes", hk_py_resident());
    hk_py_json_size(out, ",", "resident_ours_bytes", hk_py_resident_ours());
    fputc('}', out);
}

static void labels_json(FILE *out)
{
    hak_label_info labels[HAK_LABELS_MAX + 1];
    int n = hk_py_labels(labels);
    fputs(",\"labels\":{", out);
    const char *comma = "";
    for (int i = 0; i < n; i++) {
        if (labels[i].live_blocks == 0) continue;
        fputs(comma, out);
        hk_py_json_string(out, labels[i].label ? labels[i].name : "unlabelled");
        hk_py_json_size(out, ":{", "live_bytes", labels[i].live_bytes);
        hk_py_json_size(out, ",", "live_blocks", labels[i].live_blocks);
        fputc('}', out);
        comma = ",";
    }
    fputc('}', out);
}

static void status_json(FILE *out, bool gil)
{
    hk_py_status status;
    hk_py_status_get(&status, gil);
    fputs(",\"status\":{", out);
    for (int d = 0; d < HK_PY_DOMAINS; d++)
        fprintf(out, "%s\"%s\":\"%s\"", d ? "," : "", hk_py_domain_names[d], state_names[status.state[d]]);
    fprintf(out, ",\"early\":%s,\"labels\":\"%s\",\"why\":", status.early ? "true" : "false", status.labels);
    hk_py_json_string(out, status.why);
    fputs("},\"wrapped\":{", out);
    const char *comma = "";
    for (int d = HK_PY_RAW; d <= HK_PY_OBJ; d++) {
        if (status.state[d] != HK_PY_WRAPPED) continue;
        hk_py_wrap_count c;
        hk_py_wrap_counts((hk_py_domain)d, &c);
        fprintf(out, "%s\"%s\":{\"allocations\":%llu,\"frees\":%llu,\"bytes\":%llu}", comma,
                hk_py_domain_names[d], (unsigned long long)c.allocations, (unsigned long long)c.frees,
                (unsigned long long)c.bytes);
        comma = ",";
    }
    fputc('}', out);
}

void hk_py_report_json(FILE *out, bool gil)
{
    const hk_py_python *python = hk_py_python_find();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(out, "{\"schema\":1,\"hakmem\":\"%s\",\"time\":%lld,\"pid\":%ld,\"parent\":%ld,\"command\":",
            hak_version(), (long long)time(NULL), (long)getpid(), (long)getppid());
    hk_py_command_json(out);
    fputs(",\"python\":", out);
    hk_py_json_string(out, python ? python->get_version() : "");
    /* Not %f: the program's locale may have a decimal comma. */
    long long microseconds = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
                             usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    fprintf(out, ",\"cpu_seconds\":%lld.%06lld,\"peak_resident_bytes\":%lld", microseconds / 1000000,
            microseconds % 1000000, (long long)usage.ru_maxrss * 1024);
    status_json(out, gil);
    stats_json(out);
    labels_json(out);
    const hk_py_provider *provider = hk_py_provider_current();
    if (provider->report) provider->report(out, gil);
    fputs("}\n", out);
}

static void write_to(int fd, const char *name, bool gil)
{
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out) hk_py_report_json(out, gil);
    if (!out || fclose(out) != 0) fprintf(stderr, "hakmem: no report in %s: %s\n", name, strerror(errno));
}

void hk_py_report_write(bool gil)
{
    if (!target[0] || owner != getpid() || written) return;
    written = true;
    int saved = errno;
    if (strcmp(target, "-") == 0) {
        strcpy(shown, "/tmp/hakmem-XXXXXX");
        int fd = mkostemp(shown, O_CLOEXEC);
        if (fd < 0) shown[0] = '\0';
        write_to(fd, "/tmp", gil);
    } else {
        char name[sizeof target + 32];
        if (expand(name, sizeof name))
            write_to(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), name, gil);
    }
    errno = saved;
}

/* Text is made by the tool, in a process of its own: this one may be in any state. */
static void show(const char *file)
{
    const char *interpreter = getenv("HAKMEM_PYTHON");
    char *arguments[] = {(char *)interpreter, "-m", "hakmem", "report", (char *)file, NULL};
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **environment = calloc(count + 2, sizeof *environment);
    if (!interpreter || !environment) return;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "HAKMEM_", 7) != 0 && strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            environment[kept++] = environ[i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    /* `-m` looks for modules in the current folder first, which is the program's. */
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    pid_t child;
    if (posix_spawn(&child, interpreter, &actions, NULL, arguments, environment) == 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
}

void hk_py_report_finish(void)
{
    hk_py_report_write(false);
    if (!shown[0] || owner != getpid()) return;
    fflush(NULL);
    show(shown);
    unlink(shown);
    shown[0] = '\0';
}
