// Hints of policies: room for blocks that grow, by label and by the name of their call site.
#include "policy.h"

using namespace test;

namespace
{

// How often a block moves that grows from 100 to 4000 bytes in steps of 40.
unsigned moves(hak_ctx *ctx, hak_label label, hak_site site)
{
    unsigned moved = 0;
    void *p = hak_alloc_cs(ctx, 100, label, site);
    REQUIRE(p != nullptr);
    fill(p, 100, 1);
    for (size_t n = 140; n <= 4000; n += 40) {
        void *q = hak_realloc_cs(ctx, p, n, label, site);
        REQUIRE(q != nullptr);
        REQUIRE(filled(q, n - 40, 1));
        fill(q, n, 1);
        moved += q != p;
        p = q;
    }
    hak_free(ctx, p);
    require_sound(ctx);
    return moved;
}

} // namespace

TEST_CASE("policy: a block whose label or site has a hint gets room when it grows")
{
    const bool later = GENERATE(false, true), shared = GENERATE(false, true);
    CAPTURE(later, shared);
    TestSpace s;
    Policy p("room 100 label grows\nroom 100 site here\nroom 10 site little\n");
    hak_options options = HAK_OPTIONS_INIT;
    options.shared = shared;
    if (!later) options.policy = p;
    TestCtx ctx(s.space, &options);
    hak_label grows = hak_label_define(ctx, "grows"), other = hak_label_define(ctx, "other");
    REQUIRE(hak_site_define(ctx, 1000, "here") == 0);
    if (later) {
        CHECK(moves(ctx, grows, 0) == moves(ctx, other, 0));
        CHECK(moves(ctx, 0, 1000) == moves(ctx, 0, 0));
        REQUIRE(hak_ctx_policy_set(ctx, p) == 0);
        hak_free(ctx, hak_alloc(ctx, 100 * KiB)); // the calling thread's heap passes by
    }
    REQUIRE(hak_site_define(ctx, 2000, "little") == 0);
    unsigned without = moves(ctx, other, 0);
    CHECK(without > 20);
    CHECK(moves(ctx, grows, 0) <= 7);
    CHECK(moves(ctx, other, 1000) <= 7);
    CHECK(moves(ctx, grows, 2000) > 7); // the site's goes first
    CHECK(moves(ctx, 0, 3000) == without);
    // A label's blocks keep it where a realloc does not say it.
    void *p0 = hak_alloc_cs(ctx, 100, grows, 0);
    unsigned moved = 0;
    for (size_t n = 140; n <= 4000; n += 40) {
        void *q = hak_realloc(ctx, p0, n);
        moved += q != p0;
        p0 = q;
    }
    CHECK(moved <= 7);
    // What shrinks by more than the room moves to a smaller block.
    CHECK(hak_usable_size(ctx, hak_realloc(ctx, p0, 500)) <= 1024);
    REQUIRE(hak_site_define(ctx, 1000, "elsewhere") == 0);
    CHECK(moves(ctx, 0, 1000) == without);
    REQUIRE(hak_ctx_policy_set(ctx, nullptr) == 0);
    hak_free(ctx, hak_alloc(ctx, 100 * KiB));
    CHECK(moves(ctx, grows, 2000) == without);
}

TEST_CASE("policy: a context that checks gives no room, and right sizes stay right")
{
    TestSpace s;
    Errors errors;
    Policy p("room 100 label grows\n");
    Options options = ctx_options(&errors);
    options.policy = p;
    options.debug = GENERATE((unsigned)HAK_DEBUG_CHECK, (unsigned)HAK_DEBUG_CANARY);
    TestCtx ctx(s.space, &options);
    hak_label grows = hak_label_define(ctx, "grows");
    size_t n = 100;
    void *q = hak_alloc_cs(ctx, n, grows, 0);
    for (; n < 3000; n += 40) {
        q = hak_realloc_sized(ctx, q, n, n + 40);
        REQUIRE(q);
    }
    hak_free_sized(ctx, q, n);
    CHECK(errors.take() == "");
}

TEST_CASE("policy: sites have names by the thousand")
{
    TestSpace s;
    TestCtx ctx(s.space);
    for (hak_site site = 1; site <= 5000; site++)
        REQUIRE(hak_site_define(ctx, site * 16, ("site " + std::to_string(site)).c_str()) == 0);
    Policy p("room 100 site site 4711\n");
    REQUIRE(hak_ctx_policy_set(ctx, p) == 0);
    CHECK(moves(ctx, 0, 4711 * 16) <= 7);
    CHECK(moves(ctx, 0, 4712 * 16) > 20);
    CHECK(hak_site_define(ctx, 0, "x") == -1);
    CHECK(hak_site_define(ctx, 16, nullptr) == -1);
    CHECK(hak_site_define(ctx, 16, "") == -1);
    CHECK(hak_site_define(ctx, 16, std::string(192, 'x').c_str()) == -1);
    CHECK(stats_of(ctx).metadata_bytes < 512 * KiB);
    hak_site site = 5001;
    while (site <= 60000 && hak_site_define(ctx, site * 16, "x") == 0)
        site++;
    CHECK(site == 49153);
    // What has a name gets another one all the same.
    CHECK(hak_site_define(ctx, 4712 * 16, "site 4711") == 0);
    CHECK(moves(ctx, 0, 4712 * 16) <= 7);
}
