/* --hak-learn: what the context of the program learns, and the file that the next start begins with. */
#include "launcher.h"

#include "common/learn.h"

#include <stdio.h>
#include <unistd.h>

static hkc_learning learning;

bool hkl_learn_plan(hkl_options *o, char *message, size_t size)
{
    char why[400];
    if (!o->learn_file || o->policy || hkc_learn_load(o->learn_file, &o->policy, why, sizeof why))
        return true;
    snprintf(message, size, "--hak-learn: %s", why);
    return false;
}

bool hkl_learn_start(const hkl_options *o, hak_ctx *ctx)
{
    return hkc_learn_start(&learning, ctx, o->mode == HAK_MODE_RESEARCH);
}

bool hkl_learn_finish(const hkl_options *o)
{
    if (hkc_learn_finish(&learning, o->learn_file, o->mode == HAK_MODE_RESEARCH ? STDERR_FILENO : -1) == 0)
        return true;
    hkl_message("cannot write what was learned");
    return false;
}
