/* Names of errors, the version, failures. */
#include "api/errors.h"

const char *hak_error_name(hak_error error)
{
    /* Not a table of pointers: that would be writable data in position-independent code. */
    switch (error) {
    case HAK_OK:
        return "HAK_OK";
    case HAK_E_FOREIGN:
        return "HAK_E_FOREIGN";
    case HAK_E_DOUBLE_FREE:
        return "HAK_E_DOUBLE_FREE";
    case HAK_E_POINTER:
        return "HAK_E_POINTER";
    case HAK_E_SIZE:
        return "HAK_E_SIZE";
    case HAK_E_ALIGNMENT:
        return "HAK_E_ALIGNMENT";
    case HAK_E_OVERFLOW:
        return "HAK_E_OVERFLOW";
    case HAK_E_LABEL:
        return "HAK_E_LABEL";
    case HAK_E_USE_AFTER_FREE:
        return "HAK_E_USE_AFTER_FREE";
    case HAK_E_CORRUPT:
        return "HAK_E_CORRUPT";
    case HAK_E_BOUNDS:
        return "HAK_E_BOUNDS";
    }
    return "unknown error";
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define VERSION TEXT(HAK_VERSION_MAJOR) "." TEXT(HAK_VERSION_MINOR) "." TEXT(HAK_VERSION_PATCH)

const char *hak_header_error(int layout)
{
    if (layout == HAK_LAYOUT) return NULL;
    return "the program was compiled with the header of another hakmem than this library, which is " VERSION;
}

const char *hak_version(void)
{
    return VERSION;
}

void *hk_fail(hak_ctx *ctx)
{
    atomic_fetch_add_explicit(&ctx->account.failures, 1, memory_order_relaxed);
    return NULL;
}
