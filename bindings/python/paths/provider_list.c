#include "paths/providers.h"

#include <string.h>

static const hkp_provider *const providers[] = {&hkp_provider_off, &hkp_provider_native, &hkp_provider_site};

const hkp_provider *hkp_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (strcmp(providers[i]->name, name) == 0) return providers[i];
    return NULL;
}
