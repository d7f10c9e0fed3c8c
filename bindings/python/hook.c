/* Loaded by LD_PRELOAD: puts hakmem in before the first allocation of Python. In a process without a Python,
 * and where the extension module loads this file into a running interpreter, nothing happens. */
#include "install.h"
#include "options.h"

__attribute__((constructor)) static void at_load(void)
{
    const hk_py_python *python = hk_py_python_find();
    hk_py_options options;
    if (!python || python->is_initialized() || !hk_py_options_read(&options)) return;
    if (hk_py_install(options.all, HK_PY_REPLACE, options.labels) != 0) {
        hk_py_status status;
        hk_py_status_get(&status);
        fprintf(stderr, "hakmem: %s; hakmem stays out\n", status.why);
        return;
    }
    if (options.limit) hk_py_limit(0, options.limit, NULL, NULL);
}
