// The contract of lua_Alloc, over whole programs: sizes are exact, shrinks succeed, nothing is left.
#include "lua_test.h"

#include <unordered_map>

using namespace test;

namespace
{

// hak_lua_alloc between the engine and the context, with all that it is given and returns.
struct Checker {
    hak_ctx *ctx;
    std::unordered_map<void *, size_t> blocks;
    size_t calls = 0, wrong_sizes = 0, unknown = 0, failed_shrinks = 0, blocks_for_nothing = 0;

    static void *alloc(void *ud, void *ptr, size_t osize, size_t nsize)
    {
        Checker *c = static_cast<Checker *>(ud);
        c->calls++;
        if (ptr != nullptr) {
            auto found = c->blocks.find(ptr);
            c->unknown += found == c->blocks.end();
            c->wrong_sizes += found != c->blocks.end() && found->second != osize;
        }
        void *p = hak_lua_alloc(c->ctx, ptr, osize, nsize);
        c->blocks_for_nothing += nsize == 0 && p != nullptr;
        c->failed_shrinks += ptr != nullptr && nsize != 0 && nsize <= osize && p == nullptr;
        if (ptr != nullptr && (nsize == 0 || p != nullptr)) c->blocks.erase(ptr);
        if (p != nullptr) c->blocks[p] = nsize;
        return p;
    }
};

struct Misuse {
    size_t reports = 0;
    std::string last;
    static void record(void *user, hak_error error, const void *, const char *what)
    {
        Misuse *m = static_cast<Misuse *>(user);
        m->reports++;
        m->last = std::string(hak_error_name(error)) + ": " + (what ? what : "");
    }
};

} // namespace

TEST_CASE("sizes are exact over a whole program")
{
    Checker checker{};
    checker.ctx = hak_ctx_new(nullptr, nullptr);
    lua_State *L = new_state(Checker::alloc, &checker);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    REQUIRE(run_file(L, "whole.lua") == WHOLE_RESULT);
    CHECK(hak_ctx_check(checker.ctx, nullptr, nullptr));
    lua_close(L);
    CHECK(hak_ctx_check(checker.ctx, nullptr, nullptr));
    CHECK(checker.calls > 10000);
    CHECK(checker.wrong_sizes == 0);
    CHECK(checker.unknown == 0);
    CHECK(checker.failed_shrinks == 0);
    CHECK(checker.blocks_for_nothing == 0);
    CHECK(checker.blocks.empty());
    CHECK(live_blocks(checker.ctx) == 0);
    hak_ctx_destroy(checker.ctx);
}

// The core checks the size of every free and resize itself here, and that nothing writes to freed blocks.
TEST_CASE("no misuse in a checking context, with and without labels")
{
    bool labels = GENERATE(false, true);
    Misuse misuse;
    hak_options options = HAK_OPTIONS_INIT;
    options.debug = HAK_DEBUG_CHECK | HAK_DEBUG_POISON;
    options.on_error = Misuse::record;
    options.error_user = &misuse;
    lua_State *L = labels ? hak_lua_newstate_labelled(nullptr, &options) : hak_lua_newstate(&options);
    REQUIRE(L != nullptr);
    luaL_openlibs(L);
    CHECK(run_file(L, "whole.lua") == WHOLE_RESULT);
    CHECK(hak_ctx_check(hak_lua_context(L), Misuse::record, &misuse));
    lua_close(L);
    INFO(misuse.last);
    CHECK(misuse.reports == 0);
}

TEST_CASE("hak_lua_alloc by hand")
{
    hak_ctx *ctx = hak_ctx_new(nullptr, nullptr);
    CHECK(hak_lua_alloc(ctx, nullptr, 0, 0) == nullptr);
    CHECK(hak_lua_alloc(ctx, nullptr, 5, 0) == nullptr); // a type tag in place of the size
    char *p = static_cast<char *>(hak_lua_alloc(ctx, nullptr, 4, 100));
    REQUIRE(p != nullptr);
    p[0] = 'a';
    p[99] = 'z';
    p = static_cast<char *>(hak_lua_alloc(ctx, p, 100, 5000));
    REQUIRE(p != nullptr);
    CHECK(p[0] == 'a');
    CHECK(p[99] == 'z');
    // Over the limit, growth fails and a shrink does not.
    REQUIRE(hak_limit(ctx, 0, 1, nullptr, nullptr) == 0);
    CHECK(hak_lua_alloc(ctx, p, 5000, 64 << 20) == nullptr);
    p = static_cast<char *>(hak_lua_alloc(ctx, p, 5000, 10));
    REQUIRE(p != nullptr);
    CHECK(p[0] == 'a');
    CHECK(hak_lua_alloc(ctx, p, 10, 0) == nullptr);
    CHECK(live_blocks(ctx) == 0);
    hak_ctx_destroy(ctx);
}
