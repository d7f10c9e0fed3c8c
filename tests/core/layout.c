/* A program whose header is of another layout than the library gets no context and no space, and is told why.
 * What layout 1 is, is written here once more: whoever moves a member gives HAK_LAYOUT the next number. */
#include <hakmem/hakmem.h>
#include <hakmem/profile.h>
#include <hakmem/tuning.h>

#include <stdio.h>
#include <string.h>

#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)

_Static_assert(HAK_LAYOUT == 1, "the numbers below are those of another layout");
AT(hak_options, size, 0);
AT(hak_options, name, 8);
AT(hak_options, quota, 16);
AT(hak_options, on_error, 24);
AT(hak_options, error_user, 32);
AT(hak_options, debug, 40);
AT(hak_options, labels, 48);
AT(hak_options, label_count, 56);
AT(hak_options, shared, 64);
AT(hak_options, user, 72);
AT(hak_options, max_align, 80);
AT(hak_options, workload, 84);
AT(hak_options, mode, 88);
AT(hak_options, tuning, 96);
AT(hak_options, policy, 104);
AT(hak_options, trace_calls, 112);
AT(hak_options, seed, 120);
AT(hak_space_options, os, 8);
AT(hak_space_options, max_address, 16);
AT(hak_space_options, reserve, 24);
AT(hak_space_options, buffer, 32);
AT(hak_space_options, buffer_size, 40);
AT(hak_space_options, buffer_only, 48);
AT(hak_space_options, mode, 52);
AT(hak_space_options, tuning, 56);
AT(hak_space_options, policy, 64);
AT(hak_stats, live_bytes, 8);
AT(hak_stats, peak_bytes, 24);
AT(hak_stats, os_calls, 120);
AT(hak_block, size, 8);
AT(hak_block, label, 16);
AT(hak_block, site, 24);
_Static_assert(sizeof(hak_label_info) == 32 && offsetof(hak_label_info, live_blocks) == 24, "hak_label_info");
AT(hak_os, user, 8);
AT(hak_os, reserve, 16);
AT(hak_os, remap, 48);
AT(hak_os, populate, 88);
AT(hak_tuning, retained_yields, 96);
AT(hak_profile_options, seed, 56);
_Static_assert(HAK_E_FOREIGN == 1 && HAK_E_CORRUPT == 9, "hak_error");
_Static_assert(HAK_MODE_LEAN == 3 && HAK_WORKLOAD_MALLOC == 2, "hak_mode, hak_workload");

static int failures;

static void expect(int line, int ok)
{
    if (ok) return;
    printf("line %d\n", line);
    failures++;
}
#define EXPECT(ok) expect(__LINE__, ok)

int main(void)
{
    hak_options options = HAK_OPTIONS_INIT;
    hak_space_options space_options = HAK_SPACE_OPTIONS_INIT;
    EXPECT(!hak_header_error(HAK_LAYOUT));
    EXPECT(!hak_options_error(&options) && !hak_space_options_error(&space_options));
    options.debug = 1u << 31;
    EXPECT(!strcmp(hak_options_error(&options), "debug: HAK_DEBUG_* only"));
    options.debug = 0;
    space_options.reserve = 1;
    EXPECT(hak_space_options_error(&space_options) != NULL);
    space_options.reserve = 0;
    hak_space *space = hak_space_new(&space_options);
    hak_ctx *ctx = hak_ctx_new(space, &options);
    EXPECT(ctx && hak_alloc(ctx, 1));
    hak_ctx_destroy(ctx);

#undef HAK_LAYOUT
#define HAK_LAYOUT 2
    const char *error = hak_header_error(HAK_LAYOUT);
    EXPECT(error && strstr(error, "another hakmem") && strstr(error, hak_version()));
    EXPECT(!hak_ctx_new(space, &options) && !hak_ctx_new(NULL, NULL) && !hak_space_new(NULL));
    EXPECT(hak_options_error(&options) == error && hak_space_options_error(&space_options) == error);
    hak_space_delete(space);
    return failures;
}
