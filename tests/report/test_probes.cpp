// Samples of a host's own profile, told by probes: what test_probes.py stops at.
#include "catch.h"

#include <cerrno>
#include <hakmem/report.h>

TEST_CASE("samples of a host's profile are told by probes", "[probes]")
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    options.mode = HAK_PROFILE_EXACT;
    const int error = hak_report_probes(&options);
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
    REQUIRE(error == 0);
    CHECK((options.sample_made && options.sample_gone));
#else
    REQUIRE(error == ENOTSUP);
    CHECK_FALSE((options.sample_made || options.sample_gone));
#endif
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    REQUIRE(hak_profile_start(ctx, &options) == 0);
    hak_free(ctx, hak_alloc(ctx, 3000));
    hak_ctx_destroy(ctx);
}

TEST_CASE("probes take no place that a host's functions have")
{
    hak_profile_options options = HAK_PROFILE_OPTIONS_INIT;
    const auto gone = [](void *, const void *) {};
    options.sample_gone = gone;
    CHECK(hak_report_probes(&options) == EINVAL);
    CHECK(options.sample_made == nullptr);
    CHECK(options.sample_gone == gone);
    options = HAK_PROFILE_OPTIONS_INIT;
    options.size = offsetof(hak_profile_options, sample_gone);
    CHECK(hak_report_probes(&options) == EINVAL);
    CHECK(hak_report_probes(nullptr) == EINVAL);
}
