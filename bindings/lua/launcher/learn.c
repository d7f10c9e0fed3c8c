/* --hak-learn: what the context of the program learns, and the file that the next start begins with. */
#include "launcher.h"

#include "common/policy.h"

#include <hakmem/learn.h>
#include <hakmem/lua.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hak_learner *learner; /* NULL = none */
static FILE *log_stream;
static char *log_text;
static size_t log_bytes;
static uint64_t began_ns;

static void note(void *user, const hak_decision *d)
{
    (void)user;
    if (!began_ns) began_ns = d->at_ns;
    fprintf(log_stream, "# window %llu, %.1f s: %s\n", (unsigned long long)d->window,
            (double)(d->at_ns - began_ns) / 1e9, d->text);
}

bool hkl_learn_plan(hkl_options *o, char *message, size_t size)
{
    if (!o->learn_file || o->policy) return true;
    if (access(o->learn_file, F_OK) != 0 && errno == ENOENT) {
        int error = hkc_file_try(o->learn_file);
        if (error) snprintf(message, size, "--hak-learn: %s: %s", o->learn_file, strerror(error));
        return !error;
    }
    char why[400];
    o->policy = hkc_policy_load(o->learn_file, why, sizeof why);
    if (!o->policy) snprintf(message, size, "--hak-learn: %s", why);
    return o->policy;
}

bool hkl_learn_start(const hkl_options *o, hak_ctx *ctx)
{
    hak_learner_options options = HAK_LEARNER_OPTIONS_INIT;
    options.windows = o->mode == HAK_MODE_RESEARCH;
    options.log = note;
    log_stream = open_memstream(&log_text, &log_bytes);
    learner = log_stream ? hak_learner_new(NULL, &options) : NULL;
    if (!learner || hak_learner_add(learner, ctx) != 0) return false;
    hak_ctx_tick(ctx, 0);
    return true;
}

bool hkl_learn_finish(const hkl_options *o, hak_ctx *ctx)
{
    if (!learner) return true;
    /* What no tick of the program has shown: how large the heap was. */
    hak_ctx_tick(ctx, 0);
    hak_policy *policy = hak_learner_policy(learner);
    hak_learner_delete(learner);
    learner = NULL;
    int error = fclose(log_stream) != 0 || !policy ? ENOMEM : 0;
    if (!error && o->learn_file) error = hkc_policy_save(policy, o->learn_file, log_text);
    else if (!error && o->mode == HAK_MODE_RESEARCH) fputs(log_text, stderr);
    hak_policy_unref(policy);
    free(log_text);
    log_text = NULL;
    if (error) hkl_message("cannot write what was learned");
    return !error;
}
