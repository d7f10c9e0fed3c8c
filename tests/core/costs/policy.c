/* Policies, learners and guard pages. */
#include "costs.h"

#include <hakmem/guard.h>
#include <hakmem/learn.h>
#include <hakmem/policy.h>

enum { HINTS = 512, TEXT = 1 << 16 };

static hak_hint hints[HINTS];
static hak_policy_options options;
static hak_policy *policy;
static char text[TEXT];
static size_t bytes;

static void options_error(size_t i)
{
    (void)i;
    must(!hak_policy_options_error(&options));
}

static void policy_new(size_t i)
{
    (void)i;
    must((policy = hak_policy_new(NULL, &options)) != NULL);
}

static void reading(size_t i)
{
    (void)i;
    hak_tuning tuning = HAK_TUNING_INIT;
    sink += (size_t)hak_policy_name(policy)[0] + (size_t)hak_policy_mode(policy);
    sink += (size_t)hak_policy_tuning(policy, &tuning);
    sink += (size_t)hak_mode_by_name("lean") + (size_t)hak_mode_name(HAK_MODE_FAST)[0];
    sink += hak_policy_of_mode(HAK_MODE_LEAN) != NULL;
    sink += hak_policy_price(policy) + hak_policy_budget(policy) + hak_policy_undone(policy, NULL, 0);
    hak_policy_unref(hak_policy_ref(policy));
}

static void read_hints(size_t i)
{
    (void)i;
    static hak_hint out[HINTS];
    sink += hak_policy_hints(policy, out, HINTS);
}

static void print(size_t i)
{
    (void)i;
    bytes = hak_policy_print(policy, text, TEXT);
    must(bytes < TEXT);
}

static void parse(size_t i)
{
    (void)i;
    hak_policy *read = hak_policy_parse(NULL, text, bytes, NULL);
    must(read != NULL);
    hak_policy_unref(read);
}

static void diff(size_t i)
{
    (void)i;
    sink += hak_policy_diff(policy, policy, NULL, NULL);
}

static void policy_set(size_t i)
{
    must(hak_ctx_policy_set(ctx, i % 2 ? NULL : policy) == 0);
}

static void policy_of_ctx(size_t i)
{
    (void)i;
    hak_tuning tuning = HAK_TUNING_INIT;
    hak_policy_unref(hak_ctx_policy(ctx));
    sink += (size_t)hak_ctx_tuning(ctx, &tuning);
}

static void policy_of_space(size_t i)
{
    hak_space_policy_set(space, i % 2 ? NULL : policy);
    hak_policy_unref(hak_space_policy(space));
}

static void site_define(size_t i)
{
    must(hak_site_define(ctx, 1 + i, "src/any.c:1") == 0);
}

void measure_policy(size_t n)
{
    static char names[HINTS][32];
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "src/file%zu.c:%zu", i, i);
        hints[i] = (hak_hint){.site = names[i], .room = 50};
    }
    options = (hak_policy_options)HAK_POLICY_OPTIONS_INIT;
    options.hints = hints;
    options.hint_count = n;
    begin(NULL);
    measure("policy_options_error", n, 10, options_error);
    measure("policy_new", n, 1, policy_new);
    measure("policy reading", n, 10, reading);
    measure("policy_hints", n, 10, read_hints);
    measure("policy_print", n, 10, print);
    measure("policy_parse", n, 1, parse);
    measure("policy_diff", n, 1, diff);
    policy_set(0);
    measure("site_define", n, 10, site_define);
    measure("policy_set", n, 11, policy_set);
    measure("policy of ctx", n, 10, policy_of_ctx);
    measure("policy of space", n, 10, policy_of_space);
    hak_space_policy_set(space, NULL);
    end();
    hak_policy_unref(policy);
}

/* ---- Learners ------------------------------------------------------------------------------------- */

static hak_learner *learner;
static hak_ctx *learned[32];

static void learner_new(size_t i)
{
    (void)i;
    must(!hak_learner_options_error(NULL) && (learner = hak_learner_new(NULL, NULL)) != NULL);
}

static void learner_add(size_t i)
{
    must((learned[i] = hak_ctx_new(space, NULL)) && hak_learner_add(learner, learned[i]) == 0);
    must(hak_ctx_learner(learned[i]) == learner);
}

static void learner_asked(size_t i)
{
    hak_learner_info info = {.size = sizeof info};
    hak_learner_progress(learner, i);
    must(hak_learner_stats(learner, &info) == 0);
    hak_decision decision = {.size = sizeof decision};
    hak_window window = {.size = sizeof window};
    sink += (size_t)(hak_learner_decision(learner, i, &decision) + hak_learner_window(learner, i, &window));
}

static void learner_policy(size_t i)
{
    (void)i;
    hak_policy *read = hak_learner_policy(learner);
    must(read != NULL);
    hak_policy_unref(read);
}

/* A second at whose end the host ticks. */
static void learner_second(size_t i)
{
    static uint64_t now = 1;
    for (size_t k = 0; k < i % 2 + 1; k++)
        hak_free(learned[0], hak_alloc(learned[0], 100));
    hak_ctx_tick(learned[0], now += 1000000000);
    hak_learner_look(learned[0], now);
}

static void learner_delete(size_t i)
{
    (void)i;
    hak_learner_delete(learner);
}

void measure_learner(size_t n)
{
    begin(NULL);
    measure("learner_new", n, 1, learner_new);
    for (size_t i = 0; i < n; i++)
        learner_add(i);
    for (size_t i = 0; i < 8 * n; i++)
        must(hak_alloc(learned[0], 9000) && (i % 8 || hak_alloc(learned[0], (size_t)2 << 20)));
    measure("learner second", n, 100, learner_second);
    measure("learner asked", n, 10, learner_asked);
    measure("learner_policy", n, 1, learner_policy);
    measure("learner_delete", n, 1, learner_delete);
    end();
}

/* ---- Guard pages ---------------------------------------------------------------------------------- */

static hak_guard_report report = HAK_GUARD_REPORT_INIT;

static void explain(size_t i)
{
    must(hak_guard_explain(ctx, blocks[i % count], &report));
    must(hak_space_guard_explain(space, blocks[i % count], &report));
}

static void explain_text(size_t i)
{
    (void)i;
    sink += hak_guard_text(&report, text, 1024);
}

static void guard_frames(size_t i)
{
    (void)i;
    hak_guard_frames(ctx, NULL, NULL);
}

/* Of n drawn blocks. */
void measure_guard(size_t n)
{
    hak_options guarded = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.guard_every = 1;
    tuning.guard_slots = n;
    guarded.debug = HAK_DEBUG_GUARD;
    guarded.tuning = &tuning;
    hak_space_options pool = HAK_SPACE_OPTIONS_INIT;
    pool.tuning = &tuning;
    space = hak_space_new(&pool);
    must(space && (ctx = hak_ctx_new(space, &guarded)));
    for (count = 0; count < n; count++)
        must((blocks[count] = hak_alloc(ctx, 64)) != NULL);
    measure("guard_explain", n, 10, explain);
    measure("guard_text", n, 10, explain_text);
    measure("guard_frames", n, 10, guard_frames);
    end();
}
