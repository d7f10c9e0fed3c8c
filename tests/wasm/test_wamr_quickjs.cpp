// An unmodified real guest: QuickJS of the npm package quickjs-wasi, as a tenant runs scripts in it.
#include "wamr_test.h"

using namespace test;

namespace
{

int32_t nothing0(wasm_exec_env_t)
{
    return 0;
}
int32_t nothing2(wasm_exec_env_t, int32_t, int32_t)
{
    return 0;
}
void nothing3(wasm_exec_env_t, int32_t, int32_t, int32_t)
{
}
int32_t nothing5(wasm_exec_env_t, int32_t, int32_t, int32_t, int32_t, int32_t)
{
    return 0;
}

template <typename Fn>
void *symbol(Fn *fn)
{
    void *p;
    std::memcpy(&p, &fn, sizeof p);
    return p;
}

NativeSymbol natives[] = {
    {"host_get_timezone_offset", symbol(nothing2), "(ii)i", nullptr},
    {"host_interrupt", symbol(nothing0), "()i", nullptr},
    {"host_promise_rejection", symbol(nothing3), "(iii)", nullptr},
    {"host_module_normalize", symbol(nothing2), "(ii)i", nullptr},
    {"host_module_load", symbol(nothing2), "(ii)i", nullptr},
    {"host_call", symbol(nothing5), "(iiiii)i", nullptr},
};

struct Script : Guest {
    using Guest::Guest;

    // A function of up to four arguments.
    uint32_t invoke(const char *function, std::vector<uint32_t> arguments = {})
    {
        uint32_t argv[4] = {};
        std::copy(arguments.begin(), arguments.end(), argv);
        if (!hak_wasm_wamr_call(guest, function, 4, argv)) {
            std::snprintf(error, sizeof error, "%s", hak_wasm_wamr_exception(guest));
            return 0;
        }
        double number;
        std::memcpy(&number, argv, sizeof number);
        value = number;
        return argv[0];
    }
    double value = 0;

    uint32_t put(const std::string &text)
    {
        uint32_t at = invoke("malloc", {uint32_t(text.size()) + 1});
        std::memcpy(memory() + at, text.c_str(), text.size() + 1);
        return at;
    }
    // The number that a script comes to; NaN for an exception.
    double eval(const std::string &text)
    {
        uint32_t script = put(text), name = put("script");
        uint32_t result = invoke("qjs_eval", {script, uint32_t(text.size()), name, 0});
        invoke("qjs_get_float64", {result});
        double number = value;
        invoke("qjs_free_value", {result});
        return number;
    }
};

const char *const PROGRAM = "var a = []; for (let i = 0; i < 200; i++) a.push({id: i, name: 'n' + i});"
                            "JSON.parse(JSON.stringify(a)).reduce((s, o) => s + o.id + o.name.length, 0)";
constexpr double ANSWER = 200 * 199 / 2 + 10 * 2 + 90 * 3 + 100 * 4;

} // namespace

TEST_CASE("QuickJS runs in a tenant, and all of it is accounted for", "[quickjs]")
{
    Wamr host(nullptr, natives, sizeof natives / sizeof *natives);
    TenantOptions options;
    options.limits.linear_bytes = 16 * MIB;
    Tenant tenant = new_tenant(host, &options), neighbour = new_tenant(host);
    {
        Module module(tenant.get(), read_file(QUICKJS));
        INFO(module.error);
        REQUIRE(module.module != nullptr);
        CHECK(info_of(tenant.get()).label[HAK_WASM_LOAD].live_bytes > MIB);
        Script guest(tenant.get(), module);
        REQUIRE(guest.guest != nullptr);
        REQUIRE(guest.invoke("qjs_init") == 0);
        const char *why;
        hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
        REQUIRE(fresh != nullptr);
        const std::vector<char> then = guest.content(host);

        for (int i = 0; i < 5; i++) {
            CHECK(guest.eval("typeof secret === 'undefined' ? 1 : 0") == 1);
            CHECK(guest.eval("secret = 42; secret") == 42);
            CHECK(guest.eval(PROGRAM) == ANSWER);
            REQUIRE(hak_wasm_wamr_reset(guest, fresh) == 0);
            REQUIRE(guest.content(host) == then);
        }

        // without end: the guest's error, and after a reset a guest as new
        double hog = guest.eval("let a = []; for (;;) a.push(new Array(1000).fill(a.length)); 5");
        CHECK(hog != 5);
        CHECK(info_of(tenant.get()).linear_refused > 0);
        CHECK(info_of(tenant.get()).linear_bytes <= 16 * MIB);
        CHECK(info_of(neighbour.get()).linear_refused == 0);
        REQUIRE(hak_wasm_wamr_reset(guest, fresh) == 0);
        CHECK(guest.content(host) == then);
        CHECK(guest.eval(PROGRAM) == ANSWER);

        hak_wasm_tenant_info info = info_of(tenant.get());
        size_t sum = 0;
        for (int label = 0; label < HAK_WASM_LABELS; label++)
            if (label != HAK_WASM_LINEAR) sum += info.label[label].live_bytes;
        CHECK(sum == info.heap_live);
        hak_wasm_wamr_drop(fresh);
    }
    CHECK(info_of(tenant.get()).heap_live == 0);
    CHECK(info_of(tenant.get()).linear_bytes == 0);
    CHECK(host.info().image_bytes == 0);
}
