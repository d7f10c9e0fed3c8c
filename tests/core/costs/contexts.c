/* Contexts, spaces, structs, labels and groups. */
#include "costs.h"

/* ---- Contexts ------------------------------------------------------------------------------------ */

static hak_ctx *made[1024];

static void create(size_t i)
{
    made[i % 16] = hak_ctx_new(space, NULL);
}

static void destroy_made(size_t i)
{
    hak_ctx_destroy(made[i % 16]);
}

/* Beside n others, in a space that has units at hand. */
void measure_contexts(size_t n)
{
    begin(NULL);
    for (size_t i = 0; i < n; i++)
        must((made[i] = hak_ctx_new(space, NULL)) != NULL);
    for (size_t i = n; i < 16 + n; i++)
        must((made[i] = hak_ctx_new(space, NULL)) != NULL);
    for (size_t i = n; i < 16 + n; i++)
        hak_ctx_destroy(made[i]);
    measure("ctx_new", n, 16, create);
    measure("ctx_destroy", n, 16, destroy_made);
    for (size_t i = 16; i < n; i++)
        hak_ctx_destroy(made[i]);
    end();
}

/* ---- Spaces, and structs --------------------------------------------------------------------------- */

static hak_space *spaces[16];

static void space_new(size_t i)
{
    must((spaces[i] = hak_space_new(NULL)) != NULL);
}

static void space_delete(size_t i)
{
    hak_space_delete(spaces[i]);
}

/* Each with n contexts. */
void measure_spaces(size_t n)
{
    measure("space_new", n, 16, space_new);
    for (size_t i = 0; i < 16; i++)
        for (size_t k = 0; k < n; k++)
            must(hak_ctx_new(spaces[i], NULL) != NULL);
    measure("space_delete", n, 16, space_delete);
}

static size_t label_count;

static void structs(size_t i)
{
    (void)i;
    hak_space_options of_space;
    hak_options of_ctx;
    hak_tuning tuning;
    hak_os os;
    hak_profile_options of_profile = HAK_PROFILE_OPTIONS_INIT;
    hak_space_options_init(&of_space, sizeof of_space);
    hak_options_init(&of_ctx, sizeof of_ctx);
    hak_tuning_init(&tuning, sizeof tuning);
    hak_os_init(&os, sizeof os);
    must(hak_os_counted(&os) && !hak_os_counted(&os));
    must(hak_tuning_complete(&tuning, HAK_MODE_FAST, HAK_WORKLOAD_MALLOC) == 0);
    must(!hak_space_options_error(&of_space) && !hak_options_error(&of_ctx));
    must(!hak_profile_options_error(&of_profile));
    must(hak_sized_copy(&of_ctx, sizeof of_ctx, &of_ctx));
}

static void labels_error(size_t i)
{
    (void)i;
    static char text[HAK_LABELS_MAX][32];
    static const char *list[HAK_LABELS_MAX];
    hak_options options = HAK_OPTIONS_INIT;
    for (size_t k = 0; k < label_count; k++) {
        if (list[k]) continue;
        snprintf(text[k], sizeof text[k], "label %zu", k);
        list[k] = text[k];
    }
    options.labels = list;
    options.label_count = label_count;
    must(!hak_options_error(&options));
}

void measure_structs(size_t n)
{
    measure("structs", n, 100, structs);
    label_count = n;
    labels_error(0);
    measure("options_error labels", n, 10, labels_error);
}

/* ---- Labels and groups ---------------------------------------------------------------------------- */

static size_t names;

static void define(size_t i)
{
    (void)i;
    char name[32];
    snprintf(name, sizeof name, "label %zu", names);
    sink += hak_label_define(ctx, name);
}

void measure_labels(size_t n)
{
    begin(NULL);
    for (names = 1; names < n; names++)
        define(0);
    measure("label_define", n, 10, define);
    end();
}

static hak_quota *group, *more_groups[16];

static void quota_new(size_t i)
{
    must((more_groups[i] = hak_quota_new(group, 0)) != NULL);
}

static void quota_new_os(size_t i)
{
    hak_os os;
    hak_os_default(&os);
    must((more_groups[i] = hak_quota_new_os(&os, group, 0)) != NULL);
}

static void quota_delete(size_t i)
{
    hak_quota_set(more_groups[i], 1 << 20);
    hak_quota_delete(more_groups[i]);
}

static void quota_used(size_t i)
{
    (void)i;
    sink += hak_quota_used(group) + hak_quota_peak(group);
}

static void group_pair(size_t i)
{
    (void)i;
    must((blocks[0] = hak_alloc(ctx, BIG)) != NULL);
    hak_free(ctx, blocks[0]);
}

/* n groups, one in the other. */
void measure_groups(size_t n)
{
    hak_quota *all[64] = {NULL};
    for (size_t i = 0; i < n; i++)
        must((all[i] = hak_quota_new(i ? all[i - 1] : NULL, 0)) != NULL);
    group = all[n - 1];
    hak_options options = HAK_OPTIONS_INIT;
    hak_tuning tuning = HAK_TUNING_INIT;
    tuning.big_cache = HAK_NONE;
    options.quota = group;
    options.tuning = &tuning;
    begin(&options);
    measure("quota_used", n, 100, quota_used);
    measure("charge in groups", n, 100, group_pair);
    measure("quota_new", n, 16, quota_new);
    measure("quota_delete", n, 16, quota_delete);
    measure("quota_new_os", n, 16, quota_new_os);
    for (size_t i = 0; i < 16; i++)
        quota_delete(i);
    end();
    while (n > 0)
        hak_quota_delete(all[--n]);
}
