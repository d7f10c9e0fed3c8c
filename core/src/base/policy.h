/* Policies: objects that do not change, in pages of their own or constant. */
#ifndef HK_POLICY_H
#define HK_POLICY_H

#include "hakmem/policy.h"

#include "base/os.h"
#include "base/settings.h"

typedef struct hk_hint {
    bool site; /* or a label */
    uint16_t room;
    uint32_t name; /* bytes from the beginning of the policy */
    uint64_t hash; /* of the name */
} hk_hint;

struct hak_policy {
    _Atomic uint32_t refs; /* unused where it is built in */
    bool built_in;
    int mode;
    hak_tuning tuning; /* 0 = not given */
    hak_os os;
    size_t bytes; /* of its pages */
    char name[HAK_POLICY_NAME_MOST + 1];
    size_t hint_count;
    hk_hint *hints; /* behind it, their names behind them */
};

HK_INLINE const char *hk_hint_name(const hak_policy *policy, const hk_hint *hint)
{
    return (const char *)policy + hint->name;
}

uint64_t hk_name_hash(const char *name);
/* Whether the text may be the name of something: 1 to `most` bytes, none of them of control, no blank at an
 * end. */
bool hk_name_good(const char *name, size_t most);
/* The room that the policy, which may be NULL, gives to the label or site of this name; 0 = none. */
unsigned hk_policy_room(const hak_policy *policy, bool site, uint64_t hash);

/* Makes *to the settings in force under a policy, which may be NULL, for what was made with `base`, where the
 * host gave those with a bit in `given`. */
void hk_policy_settings(hak_tuning *to, const hak_tuning *base, uint32_t given, const hak_policy *policy,
                        hak_workload workload);

#endif
