#include "base/core.h"

static const hkp_provider none = {.name = "off", .counts = true};
static const hkp_provider *current = &none;

const hkp_provider *hkp_provider_current(void)
{
    return current;
}

void hkp_provider_use(const hkp_provider *provider)
{
    current = provider;
}
