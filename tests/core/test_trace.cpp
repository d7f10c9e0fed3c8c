// HAK_DEBUG_TRACE: which calls are kept, what on_error can tell of a pointer, and what is read beside other
// threads.
#define HAK_NO_ATTRIBUTES // It asks for more than there can be.
#include "shared.h"

#include <hakmem/trace.h>

#include <thread>

using namespace test;

namespace
{

using Calls = std::vector<hak_trace_call>;

bool collect(void *user, const hak_trace_call *call)
{
    static_cast<Calls *>(user)->push_back(*call);
    return true;
}

Calls calls_of(const hak_ctx *ctx, const void *p = nullptr)
{
    Calls calls;
    REQUIRE(hak_trace_visit(ctx, p, collect, &calls) == 0);
    return calls;
}

std::string text_of(const hak_ctx *ctx, const void *p, size_t room = 4096)
{
    std::vector<char> text(room + 1, '~');
    size_t n = hak_trace_text(ctx, p, text.data(), room);
    REQUIRE(n < std::max<size_t>(room, 1));
    REQUIRE(text[room] == '~');
    if (room) REQUIRE(text[n] == 0);
    return std::string(text.data(), n);
}

size_t lines_of(const std::string &text)
{
    return (size_t)std::count(text.begin(), text.end(), '\n');
}

// The kinds of calls, and what of them is sure, as one line.
std::string story(const Calls &calls, const void *p)
{
    std::string s;
    for (const hak_trace_call &c : calls) {
        s += c.kind == HAK_TRACE_ALLOC ? 'a' : c.kind == HAK_TRACE_REALLOC ? 'r' : 'f';
        if (c.p != p) s += '?';
        s += std::to_string(c.n);
        if (c.label) s += 'l' + std::to_string(c.label);
        if (c.site) s += 's' + std::to_string(c.site);
        s += ' ';
    }
    return s;
}

// What on_error read about the pointer that it was given.
struct Teller {
    hak_ctx *ctx = nullptr;
    Calls calls;
    std::string text, error;
    static void tell(void *user, hak_error error, const void *p, const char *)
    {
        Teller *t = static_cast<Teller *>(user);
        t->error = hak_error_name(error);
        t->calls = calls_of(t->ctx, p);
        t->text = text_of(t->ctx, p);
    }
};

} // namespace

TEST_CASE("on_error can tell who allocated and who freed the pointer that it is given")
{
    shared_too([](bool shared) {
        Teller teller;
        Debugged d(HAK_DEBUG_TRACE, [&](Options &o) {
            o.shared = shared;
            o.on_error = Teller::tell;
            o.error_user = &teller;
        });
        teller.ctx = d;
        char *other = static_cast<char *>(hak_alloc_cs(d, 40, 1, 3));
        char *p = static_cast<char *>(hak_alloc_cs(d, 40, 2, 0x11));
        hak_free(d, other);
        hak_free_cs(d, p, 0x22);
        REQUIRE(teller.error.empty());
        hak_free_cs(d, p, 0x33);
        CHECK(teller.error == "HAK_E_DOUBLE_FREE");
        CHECK(story(teller.calls, p) == "a40l2s17 f40s34 f40s51 ");
        CHECK(lines_of(teller.text) == 3);
        char line[200];
        snprintf(line, sizeof line, "  call 2: allocated 40 bytes at %p, label green, site 0x11\n",
                 (void *)p);
        CHECK(teller.text.find(line) == 0);
        CHECK(teller.text.find(": freed 40 bytes at ") != std::string::npos);

        // A guest may have chosen the name.
        const hak_label guest = hak_label_define(d, "a\n\x1b[2J\xc2\x9b");
        void *named = hak_alloc_cs(d, 3000, guest, 0x12);
        CHECK(text_of(d, named).find(", label a??[2J?, site 0x12") != std::string::npos);
        CHECK(lines_of(text_of(d, named)) == 1);
        hak_free(d, named);

        // A realloc of a freed block, and a pointer into a block.
        CHECK(hak_realloc_cs(d, p, 100, 1, 0x44) == nullptr);
        CHECK(story(teller.calls, p) == "a40l2s17 f40s34 f40s51 r100s68 ");
        CHECK(teller.text.find(": reallocated to 100 bytes") != std::string::npos);
        CHECK(hak_aligned_realloc(d, p, 64, 100) == nullptr);
        CHECK(teller.calls.size() == 5);
        char *q = static_cast<char *>(hak_alloc_cs(d, 5000, 1, 0x55));
        hak_free(d, q + 4999);
        CHECK(teller.error == "HAK_E_POINTER");
        REQUIRE(teller.calls.size() == 2);
        CHECK(teller.calls[0].p == q);
        CHECK(teller.calls[0].site == 0x55);
        CHECK(teller.calls[1].p == q + 4999);
        hak_free(d, q);
    });
}

TEST_CASE("every kind of call is kept, of every kind of block")
{
    unsigned guard = GENERATE(0u, (unsigned)HAK_DEBUG_GUARD);
    unsigned more = GENERATE(0u, (unsigned)HAK_DEBUG_CANARY, (unsigned)HAK_DEBUG_POISON);
    shared_too([=](bool shared) {
        Debugged d(HAK_DEBUG_TRACE | guard | more, [=](Options &o) {
            o.shared = shared;
            o.guard_every = 1;
        });
        for (size_t n : {(size_t)0, (size_t)1, (size_t)40, 1024 * (size_t)1, 8 * KiB, 32 * KiB, 33 * KiB,
                         900 * KiB, 2 * MiB}) {
            INFO(n);
            std::string bytes = std::to_string(n);
            void *p = hak_alloc_cs(d, n, 1, 5);
            Calls calls = calls_of(d, p);
            CHECK(story({calls.back()}, p) == "a" + bytes + "l1s5 ");
            hak_free_sized(d, p, n);
            calls = calls_of(d, p);
            CHECK(story({calls.back()}, p) == "f" + bytes + " ");
            p = hak_calloc_cs(d, 1, n, 2, 6);
            calls = calls_of(d);
            CHECK(story({calls.back()}, p) == "a" + bytes + "l2s6 ");
            hak_space_free(d.space.space, p);
            calls = calls_of(d);
            CHECK(story({calls.back()}, p) == "f" + bytes + " ");
            p = hak_aligned_alloc_cs(d, 64, n, 3, 7);
            calls = calls_of(d);
            CHECK(story({calls.back()}, p) == "a" + bytes + "l3s7 ");
            // Where it moves, an allocation and a free follow, but none is freed where its pages move.
            void *q = hak_realloc_cs(d, p, n + 100, 1, 8);
            REQUIRE(q);
            size_t first = calls.size();
            calls = calls_of(d);
            REQUIRE(calls.size() == first + (q == p ? 1 : n > MiB ? 2 : 3));
            CHECK(story({calls[first]}, p) == "r" + std::to_string(n + 100) + "l1s8 ");
            if (q != p) {
                CHECK(story({calls[first + 1]}, q) == "a" + std::to_string(n + 100) + "l1s8 ");
                if (n <= MiB) CHECK(story({calls[first + 2]}, p) == "f" + bytes + " ");
            }
            hak_free(d, q);
        }
        Calls calls = calls_of(d);
        for (size_t i = 0; i < calls.size(); i++)
            REQUIRE(calls[i].number == i + 1);
        size_t before = calls.size();
        hak_free(d, nullptr);
        hak_free_cs(d, nullptr, 1);
        CHECK(hak_alloc(d, SIZE_MAX) == nullptr);
        CHECK(d.errors.take() == "HAK_E_OVERFLOW");
        CHECK(calls_of(d).size() == before);
        CHECK(d.errors.take() == "");
    });
}

TEST_CASE("as many calls are kept as the options say")
{
    for (auto [said, kept] : {std::pair<size_t, size_t>{0, 1024}, {16, 16}, {20, 32}, {32768, 32768}}) {
        INFO(said);
        Debugged plain(HAK_DEBUG_CHECK);
        Debugged d(HAK_DEBUG_TRACE, [said = said](Options &o) { o.trace_calls = said; });
        size_t ring = stats_of(d).metadata_bytes - stats_of(plain).metadata_bytes;
        CHECK(ring >= kept * 48);
        CHECK(ring < kept * 48 + 33 * KiB);
        for (size_t i = 0; i < kept / 2; i++)
            hak_free(d, hak_alloc(d, 10));
        Calls calls = calls_of(d);
        REQUIRE(calls.size() == kept);
        CHECK(calls.front().number == 1);
        void *p = hak_alloc(d, 11);
        calls = calls_of(d);
        REQUIRE(calls.size() == kept);
        CHECK(calls.front().number == 2);
        CHECK(calls.back().n == 11);
        hak_free(d, p);
    }
}

TEST_CASE("numbers of calls that are out of range are refused, with the flag and without")
{
    for (size_t said : {(size_t)1, (size_t)15, (size_t)32769, SIZE_MAX}) {
        Options options = ctx_options();
        for (unsigned debug : {0u, (unsigned)HAK_DEBUG_TRACE}) {
            options.debug = debug;
            options.trace_calls = said;
            REQUIRE(hak_options_error(&options) != nullptr);
            CHECK(std::string(hak_options_error(&options)) == "trace_calls: 16 to 32768");
            CHECK(hak_ctx_new(nullptr, &options) == nullptr);
        }
    }
}

TEST_CASE("without the flag nothing is kept")
{
    Debugged d(HAK_DEBUG_CHECK | HAK_DEBUG_QUARANTINE, [](Options &o) { o.trace_calls = 100; });
    hak_free(d, hak_alloc(d, 10));
    CHECK(hak_trace_visit(d, nullptr, collect, nullptr) == -1);
    CHECK(text_of(d, nullptr) == "");
    hak_trace_frames(
        d,
        [](void *, hak_ctx *, hak_site, uintptr_t *, size_t) -> size_t {
            FAIL();
            return 0;
        },
        nullptr);
    hak_free_cs(d, hak_alloc(d, 10), 1);
}

TEST_CASE("a visit may be stopped, and text has whole lines, the newest ones")
{
    Debugged d(HAK_DEBUG_TRACE);
    for (int i = 0; i < 20; i++)
        hak_free(d, hak_alloc_cs(d, 10, 1, (hak_site)i + 1));
    size_t seen = 0;
    CHECK(hak_trace_visit(
              d, nullptr,
              [](void *user, const hak_trace_call *) { return ++*static_cast<size_t *>(user) < 7; },
              &seen) == 1);
    CHECK(seen == 7);
    std::string all = text_of(d, nullptr, 65536);
    CHECK(lines_of(all) == 40);
    for (size_t room = 0; room < 1000; room++) {
        std::string some = text_of(d, nullptr, room);
        REQUIRE(some == all.substr(all.size() - some.size()));
        REQUIRE((some.empty() || all[all.size() - some.size() - 1] == '\n'));
        if (room > 200) REQUIRE(some.size() + 120 > room);
    }
    int outside;
    CHECK(text_of(d, &outside) == "");
}

TEST_CASE("a free that a quarantine does later is none of the host's")
{
    Debugged d(HAK_DEBUG_TRACE | HAK_DEBUG_QUARANTINE);
    void *p = hak_alloc_cs(d, 40, 1, 2);
    hak_free_cs(d, p, 3);
    hak_ctx_flush(d);
    CHECK(story(calls_of(d), p) == "a40l1s2 f40s3 ");
    CHECK(stats_of(d).live_blocks == 0);
}

TEST_CASE("a host that walks its stack tells the sites of calls without one")
{
    Debugged d(HAK_DEBUG_TRACE);
    uintptr_t frame = 77;
    hak_trace_frames(
        d,
        [](void *user, hak_ctx *, hak_site site, uintptr_t *frames, size_t room) -> size_t {
            REQUIRE(room == 1);
            REQUIRE(site == 0);
            frames[0] = *static_cast<uintptr_t *>(user);
            return frames[0] ? 1 : 0;
        },
        &frame);
    void *p = hak_alloc(d, 40);
    hak_free_cs(d, p, 9);
    frame = 0;
    hak_free(d, hak_alloc(d, 48));
    hak_trace_frames(d, nullptr, nullptr);
    frame = 78;
    void *q = hak_alloc(d, 56);
    hak_free(d, q);
    Calls calls = calls_of(d);
    std::vector<hak_site> sites;
    for (const hak_trace_call &c : calls)
        sites.push_back(c.site);
    CHECK(sites == std::vector<hak_site>{77, 9, 0, 0, 0, 0});
}

TEST_CASE("each call is that of its thread, where the table tells threads apart")
{
    hak_os os;
    hak_os_default(&os);
    Options options = ctx_options();
    options.debug = HAK_DEBUG_TRACE;
    options.shared = true;
    hak_ctx *ctx = hak_ctx_new(nullptr, &options);
    REQUIRE(ctx);
    void *p = hak_alloc(ctx, 40);
    uint64_t other = 0;
    run_thread([&] {
        other = os.thread_id(os.user);
        hak_free(ctx, p);
    });
    Calls calls = calls_of(ctx, p);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].thread == os.thread_id(os.user));
    CHECK(calls[1].thread == other);
    CHECK(text_of(ctx, p).find(", thread " + std::to_string(other) + "\n") != std::string::npos);
    hak_ctx_destroy(ctx);
}

TEST_CASE("calls are whole when they are read while threads make them")
{
    Debugged d(HAK_DEBUG_TRACE, [](Options &o) {
        o.shared = true;
        o.trace_calls = 16;
    });
    std::atomic<unsigned> running{3};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; t++)
        threads.emplace_back([&, t] {
            for (size_t i = 0; i < 500 * EFFORT; i++) {
                size_t n = 1 + (i * 3 + t) % 500;
                void *p = hak_alloc_cs(d, n, (hak_label)(n % 4), n * 5);
                hak_free_cs(d, p, n * 5);
            }
            running--;
        });
    do {
        uint64_t before = 0;
        for (const hak_trace_call &c : calls_of(d)) {
            REQUIRE(c.number > before);
            before = c.number;
            REQUIRE(c.p != nullptr);
            REQUIRE(c.site == c.n * 5);
            REQUIRE(c.label == (c.kind == HAK_TRACE_ALLOC ? c.n % 4 : 0));
        }
    } while (running);
    for (std::thread &t : threads)
        t.join();
    Calls calls = calls_of(d);
    REQUIRE(calls.size() == 16);
    CHECK(calls.back().number == 3 * 1000 * EFFORT);
    CHECK(d.errors.take() == "");
}

TEST_CASE("a context has its ring or is none, whatever request of pages fails, and its quota counts it")
{
    for (uint64_t nth = 1, made = 0; made == 0; nth++) {
        INFO(nth);
        TestSpace s;
        Options options = ctx_options();
        options.debug = HAK_DEBUG_TRACE;
        options.trace_calls = 32768;
        options.shared = nth % 2;
        s.os.fail_nth(nth);
        hak_ctx *ctx = hak_ctx_new(s.space, &options);
        bool refused = s.os.failed > 0;
        s.os.fail_nth(0);
        if (!refused) made++;
        REQUIRE((ctx || refused));
        if (ctx) {
            hak_free(ctx, hak_alloc(ctx, 100));
            REQUIRE(calls_of(ctx).size() == 2);
        }
        hak_ctx_destroy(ctx);
    }

    TestSpace s;
    hak_quota *quota = hak_quota_new(nullptr, 1 * MiB);
    REQUIRE(quota);
    Options options = ctx_options();
    options.quota = quota;
    options.debug = HAK_DEBUG_TRACE;
    options.trace_calls = 32768;
    CHECK(hak_ctx_new(s.space, &options) == nullptr);
    CHECK(hak_quota_used(quota) == 0);
    options.trace_calls = 1024;
    hak_ctx *ctx = hak_ctx_new(s.space, &options);
    REQUIRE(ctx);
    CHECK(hak_quota_used(quota) >= 48 * KiB);
    hak_ctx_destroy(ctx);
    CHECK(hak_quota_used(quota) == 0);
    hak_quota_delete(quota);
}
