#include "policies.h"

#include "policy_merge.h"
#include "report.h"

#include <string.h>

static hak_policy *load(const char *file)
{
    return hkr_load_policy(file, "policy: ");
}

static int check(char **files, size_t count, FILE *out)
{
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        char name[600];
        hak_policy *policy = load(files[i]);
        if (!policy) {
            status = 1;
            continue;
        }
        hkr_clean(name, sizeof name, files[i]);
        const size_t statements = hak_policy_diff(NULL, policy, NULL, NULL);
        fprintf(out, "%s: sound, %zu statement%s\n", name, statements, statements == 1 ? "" : "s");
        hak_policy_unref(policy);
    }
    return status;
}

static void put(void *to, const char *what, const char *from, const char *value)
{
    char text[3][400];
    hkr_clean(text[0], sizeof text[0], what);
    hkr_clean(text[1], sizeof text[1], from ? from : "not there");
    hkr_clean(text[2], sizeof text[2], value ? value : "not there");
    fprintf(to, "%s: %s -> %s\n", text[0], text[1], text[2]);
}

static int difference(char **files, FILE *out)
{
    hak_policy *from = load(files[0]), *to = load(files[1]);
    const int status = from && to ? 0 : 1;
    if (status == 0 && hak_policy_diff(from, to, put, out) == 0) fputs("the same\n", out);
    hak_policy_unref(from);
    hak_policy_unref(to);
    return status;
}

int hkr_policy(char **arguments, size_t count, FILE *out)
{
    if (count >= 2 && strcmp(arguments[0], "check") == 0) return check(arguments + 1, count - 1, out);
    if (count == 3 && strcmp(arguments[0], "diff") == 0) return difference(arguments + 1, out);
    if (count >= 2 && strcmp(arguments[0], "merge") == 0)
        return hkr_merge_policies(arguments + 1, count - 1, out);
    return 2;
}
