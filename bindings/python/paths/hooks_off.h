/* The hooks of provider "off": included with HKP_HOOKS. */
#include "heap/labels.h"
#include "paths/providers.h"

#define HKP_COUNTED 1
#define HKP_LABEL(domain, where) ((void)(domain), (void)(where), hkp_domain_label())
#define HKP_LABEL_FIND(domain, where) ((void)(where), hkp_domain_label_find(domain))
#include "paths/hooks.h"
