#include "common/learn.h"

#include "common/costs.h"
#include "common/file.h"
#include "common/pages.h"
#include "common/policy.h"
#include "common/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Touched as it fills; what comes later is left out. With the policy it is a text that may be read again. */
enum { TEXT = 1 << 19 };

bool hkc_learn_load(const char *file, hak_policy **policy, char *message, size_t size)
{
    if (access(file, F_OK) != 0 && errno == ENOENT) {
        int error = hkc_file_try(file);
        if (error) snprintf(message, size, "%s: %s", file, strerror(error));
        return !error;
    }
    hak_policy *found = hkc_policy_load(file, message, size);
    if (found) *policy = found;
    return found;
}

static void note(void *user, const hak_decision *d)
{
    hkc_learning *l = user;
    char line[280];
    if (!l->began_ns) l->began_ns = d->at_ns;
    int n = snprintf(line, sizeof line, "# window %llu, %.1f s: %s\n", (unsigned long long)d->window,
                     (double)(int64_t)(d->at_ns - l->began_ns) / 1e9, d->text);
    if (n <= 0 || (size_t)n >= TEXT - l->used) return;
    memcpy(l->text + l->used, line, (size_t)n + 1);
    l->used += (size_t)n;
}

/* What a MiB is worth: as the user says, or else the policy that the context begins with. */
static unsigned price_of(const hak_ctx *ctx, const hkc_memory *memory)
{
    hak_policy *policy = hak_ctx_policy(ctx);
    unsigned price = memory->price;
    if (!price && policy) price = hak_policy_price(policy);
    hak_policy_unref(policy);
    return price ? price : HAK_PRICE_NORMAL;
}

bool hkc_learn_start(hkc_learning *l, hak_ctx *ctx, const hkc_memory *memory, bool windows)
{
    hak_learner_options options = HAK_LEARNER_OPTIONS_INIT;
    const unsigned price = price_of(ctx, memory);
    options.price = price * 1e-6;
    options.keeps_speed = price < HKC_PRICE_DEAR_FROM;
    options.cpu_ns = hkc_costs_cpu_ns;
    hkc_costs_measure(&options);
    options.windows = windows;
    options.log = note;
    options.user = l;
    options.resident = hkc_resident;
    *l = (hkc_learning){.ctx = ctx, .process = getpid()};
    l->text = hkc_pages(TEXT);
    if (!l->text) return false;
    l->learner = hak_learner_new(NULL, &options);
    if (!l->learner || hak_learner_add(l->learner, ctx) != 0) {
        hak_learner_delete(l->learner);
        hkc_pages_give(l->text, TEXT);
        l->learner = NULL;
        return false;
    }
    hak_learner_look(ctx, 0);
    return true;
}

int hkc_learn_finish(hkc_learning *l, const char *file, int fd)
{
    if (!l->learner || l->process != getpid()) return 0;
    /* What no tick has shown yet: how large the heap was. */
    hak_learner_look(l->ctx, 0);
    hak_policy *policy = hak_learner_policy(l->learner);
    l->learner = NULL; /* it stays with the context, which other threads may tick */
    int error = policy ? 0 : ENOMEM;
    if (!error && file) error = hkc_policy_save(policy, file, l->text);
    if (!file && fd >= 0 && write(fd, l->text, (unsigned)l->used) < 0) error = errno;
    hak_policy_unref(policy);
    return error;
}
