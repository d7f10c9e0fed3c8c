#include "provider.h"

#include <string.h>

static const hk_py_provider *const providers[] = {&hk_py_provider_off, &hk_py_provider_native,
                                                  &hk_py_provider_site};

const hk_py_provider *hk_py_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (strcmp(providers[i]->name, name) == 0) return providers[i];
    return NULL;
}
