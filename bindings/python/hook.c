/* Loaded by LD_PRELOAD: puts hakmem in before the first allocation of Python. In a process without a Python,
 * and where the extension module loads this file into a running interpreter, nothing happens. */
#define _GNU_SOURCE
#include "install.h"
#include "options.h"
#include "program.h"
#include "report.h"
#include "seldom.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*next_exit)(int status);

__attribute__((constructor)) static void at_load(void)
{
    void *address = dlsym(RTLD_NEXT, "_exit");
    memcpy(&next_exit, &address, sizeof next_exit);
    const hk_py_python *python = hk_py_python_find();
    hk_py_options options;
    if (!python || python->is_initialized() || !hk_py_options_read(&options)) return;
    if (hk_py_install(options.all, HK_PY_REPLACE, options.labels) != 0) {
        hk_py_status status;
        hk_py_status_get(&status, false);
        fprintf(stderr, "hakmem: %s; hakmem stays out\n", status.why);
        return;
    }
    if (options.limit) hk_py_limit(0, options.limit, NULL, NULL);
    if (options.report) hk_py_report_plan(options.report, options.first);
    hk_py_await();
    hk_py_seldom_part();
}

__attribute__((destructor)) static void at_exit(void)
{
    if (hk_py_report_due) hk_py_report_finish();
}

/* os._exit, which is how the children of multiprocessing end. */
HK_PY_API __attribute__((noreturn)) void _exit(int status)
{
    if (hk_py_report_due) hk_py_report_finish();
    if (next_exit) next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}
