// Fuzz target: option structs of any contents and sizes. What *_options_error passes makes a context that
// works, and what it refuses makes none.
#include "input.h"

#include "heap.h"

#include <hakmem/profile.h>

#include <cstdio>
#include <cstdlib>

using namespace test;

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_options: %s\n", what);
    std::abort();
}

// Mostly 0, the default; else a number at an edge or any.
uint64_t word(Input &in)
{
    static const uint64_t edges[] = {1,          2,          3,        8,           16,       48,
                                     128,        129,        254,      255,         4096,     32768,
                                     65536,      65537,      1 << 20,  4 << 20,     16 << 20, 1ull << 30,
                                     1ull << 40, 1ull << 47, SIZE_MAX, SIZE_MAX - 1};
    uint8_t kind = in.byte();
    if (kind < 170) return 0;
    if (kind < 240) return edges[in.below(sizeof edges / sizeof *edges)];
    return in.value() << in.below(64);
}

void tune(Input &in, hak_tuning *t)
{
    hak_tuning_init(t, sizeof *t);
    uint64_t *words = reinterpret_cast<uint64_t *>(t);
    for (size_t i = 1; i < sizeof *t / sizeof *words; i++)
        words[i] = word(in);
    if (in.byte() > 250) t->size = word(in);
}

void use(hak_ctx *ctx)
{
    void *p[40];
    for (size_t i = 0; i < 40; i++) {
        p[i] = hak_calloc(ctx, 1, i * i * i);
        if (p[i] && hak_usable_size(ctx, p[i]) < i * i * i) wrong("usable size");
    }
    for (size_t i = 0; i < 40; i += 2)
        hak_free(ctx, p[i]);
    p[1] = hak_realloc(ctx, p[1], 3 << 20);
    if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("hak_ctx_check");
    hak_ctx_trim(ctx);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a", "b", "a", "", nullptr, "c"};
    Input in(data, size);
    FakeOs os;
    hak_tuning tuning, pages_tuning;
    tune(in, &tuning);
    tune(in, &pages_tuning);
    hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
    pages.os = os.table();
    pages.reserve = in.below(2) ? 64 * MiB : word(in);
    pages.max_address = word(in);
    pages.buffer_only = in.byte() > 250;
    pages.mode = (hak_mode)(in.byte() > 240 ? word(in) : in.below(6));
    pages.tuning = in.below(2) ? &pages_tuning : nullptr;
    const char *error = hak_space_options_error(&pages);
    hak_space *space = hak_space_new(&pages);
    if (error && space) wrong("a space of options that are refused");
    if (!error && !space && os.failed == 0 && pages.max_address == 0 && pages.reserve <= GiB)
        wrong("no space of options that are right");
    hak_options options = HAK_OPTIONS_INIT;
    options.debug = in.below(2) ? 0 : (unsigned)in.below(20);
    options.debug &= ~(unsigned)HAK_DEBUG_ABORT;
    options.labels = in.below(4) ? names : nullptr;
    options.label_count = in.below(2) ? 0 : in.below(7);
    options.shared = in.below(4) == 0;
    options.max_align = in.below(4) == 0;
    options.workload = (hak_workload)(in.byte() > 240 ? word(in) : in.below(3));
    options.mode = (hak_mode)(in.byte() > 240 ? word(in) : in.below(6));
    options.tuning = in.below(2) ? &tuning : nullptr;
    if (in.byte() > 250) options.size = word(in);
    error = hak_options_error(&options);
    hak_ctx *ctx = space ? hak_ctx_new(space, &options) : nullptr;
    if (error && ctx) wrong("a context of options that are refused");
    if (space && !error && !ctx) wrong("no context of options that are right");
    if (ctx) use(ctx);
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.mode = (hak_profile_mode)(in.byte() > 240 ? word(in) : in.below(3));
    profile.mean = word(in);
    profile.depth = (unsigned)word(in);
    profile.table_bytes = word(in);
    error = hak_profile_options_error(&profile);
    // Only a local context has a profile that its host counts.
    bool right = !error && !(options.shared && profile.mode == HAK_PROFILE_COUNTED);
    if (ctx && (hak_profile_start(ctx, &profile) == 0) != right) wrong("profile");
    if (ctx) use(ctx);
    hak_ctx_destroy(ctx);
    hak_space_delete(space);
    std::string report = os.close();
    if (report != "") wrong(report.c_str());
    return 0;
}
