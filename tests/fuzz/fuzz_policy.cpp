// Fuzz target: policies as text. What is parsed prints as a policy that is equal; what is refused says where.
#include "input.h"

#include "fake_os.h"

#include <hakmem/policy.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_policy: %s\n", what);
    std::abort();
}

std::string printed(const hak_policy *policy)
{
    size_t n = hak_policy_print(policy, nullptr, 0);
    std::string text(n + 1, '?');
    if (hak_policy_print(policy, &text[0], text.size()) != n || text[n] != 0) wrong("print");
    text.resize(n);
    return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test::FakeOs os;
    hak_policy_error error = {0, {0}};
    // Every other input has a right first line, which few would come by.
    std::string text(reinterpret_cast<const char *>(data), size);
    if (size % 2) text = "hakmem-policy 1\n" + text;
    hak_policy *policy = hak_policy_parse(os.table(), text.data(), text.size(), &error);
    if (!policy && (error.line == 0 || error.text[0] == 0)) wrong("refused without a reason");
    if (policy) {
        std::string once = printed(policy);
        hak_policy *again = hak_policy_parse(os.table(), once.data(), once.size(), &error);
        if (!again) wrong("what was printed is refused");
        if (printed(again) != once || hak_policy_diff(policy, again, nullptr, nullptr) != 0)
            wrong("not equal");
        hak_space_options pages = HAK_SPACE_OPTIONS_INIT;
        pages.os = os.table();
        pages.reserve = 64 << 20;
        hak_space *space = hak_space_new(&pages);
        hak_ctx *ctx = space ? hak_ctx_new(space, nullptr) : nullptr;
        if (!ctx) wrong("no context");
        void *p = hak_alloc(ctx, 100);
        hak_space_policy_set(space, policy);
        if (hak_ctx_policy_set(ctx, policy) != 0) wrong("policy of a context");
        for (size_t n = 1; n < 100000; n *= 3)
            hak_free(ctx, hak_alloc(ctx, n));
        hak_free(ctx, p);
        if (!hak_ctx_check(ctx, nullptr, nullptr)) wrong("hak_ctx_check");
        hak_ctx_destroy(ctx);
        hak_space_delete(space);
        hak_policy_unref(again);
        hak_policy_unref(policy);
    }
    std::string report = os.close();
    if (report != "") wrong(report.c_str());
    return 0;
}
