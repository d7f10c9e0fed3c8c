// What a tenant causes is in its account: images; and what a module may have at most.
#include "binary_test.h"
#include "wasm_test.h"

#include <string>

using namespace test;

namespace
{

hak_wasm_tenant *tenant_of(hak_wasm_host *host, size_t linear_bytes, hak_wasm_tenant *parent = nullptr)
{
    TenantOptions options;
    options.name = "payer";
    options.parent = parent;
    options.children = parent == nullptr;
    options.limits.linear_bytes = linear_bytes;
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, &options);
    REQUIRE(tenant != nullptr);
    return tenant;
}

char *memory_of(hak_wasm_host *host, size_t bytes)
{
    char *p = static_cast<char *>(hak_wasm_memory_new(host, bytes));
    REQUIRE(p != nullptr);
    return p;
}

constexpr size_t PAGE = 4096;

struct Limits : hak_wasm_module_limits {
    Limits() : hak_wasm_module_limits(HAK_WASM_MODULE_LIMITS_INIT)
    {
    }
};

std::string checked(const hak_wasm_tenant *tenant, const std::string &binary)
{
    char error[256] = "";
    // An exact copy, so that a sanitizer sees a read past the end.
    std::vector<char> copy(binary.begin(), binary.end());
    copy.shrink_to_fit();
    const int result = hak_wasm_module_check(tenant, copy.data(), copy.size(), error, sizeof error);
    CHECK((result == 0) == (error[0] == '\0'));
    CHECK(hak_wasm_module_check(tenant, copy.data(), copy.size(), nullptr, 0) == result);
    return error;
}

} // namespace

TEST_CASE("an image is charged once, with the pages that are not zero, until nobody has it", "[accounts]")
{
    Host host;
    hak_wasm_tenant *payer = tenant_of(host, 64 * MIB), *other = tenant_of(host, 64 * MIB);
    char *p, *q;
    hak_wasm_image *image;
    {
        Scope scope(payer);
        p = memory_of(host, 16 * MIB);
        std::memset(p, 1, 3 * MIB);
        p[8 * MIB] = 1;
        image = hak_wasm_image_take(host, p);
        REQUIRE(image != nullptr);
    }
    const size_t cost = 3 * MIB + 2 * PAGE;
    CHECK(info_of(payer).linear_bytes == 16 * MIB + cost);
    CHECK(info_of(payer).image_bytes == cost);
    CHECK(info_of(payer).label[HAK_WASM_LINEAR].live_bytes == 16 * MIB + cost);
    // Who uses it pays for memory alone.
    {
        Scope scope(other);
        q = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        REQUIRE(q != nullptr);
    }
    CHECK(info_of(other).linear_bytes == 16 * MIB);
    CHECK(info_of(other).image_bytes == 0);
    REQUIRE(hak_wasm_memory_free(host, p) == 0);
    CHECK(info_of(payer).linear_bytes == cost);
    hak_wasm_image_drop(image);
    // The other's memory has it still.
    CHECK(info_of(payer).linear_bytes == cost);
    REQUIRE(hak_wasm_memory_free(host, q) == 0);
    CHECK(info_of(payer).linear_bytes == 0);
    CHECK(info_of(payer).image_bytes == 0);
    CHECK(info_of(hak_wasm_host_tenant(host)).linear_bytes == 0);
    hak_wasm_tenant_close(payer, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(other, HAK_WASM_RETIRE);
}

TEST_CASE("images end at the tenant's limit, and a refused one leaves nothing", "[accounts]")
{
    Host host;
    hak_wasm_tenant *tenant = tenant_of(host, 64 * MIB);
    Scope scope(tenant);
    char *p = memory_of(host, 20 * MIB);
    std::vector<hak_wasm_image *> images;
    for (int i = 0; i < 8; i++) {
        std::memset(p, i + 1, 20 * MIB);
        hak_wasm_image *image = hak_wasm_image_take(host, p);
        if (image == nullptr) break;
        images.push_back(image);
    }
    CHECK(images.size() == 2);
    const size_t cost = 20 * MIB + PAGE;
    CHECK(info_of(tenant).linear_bytes == 20 * MIB + 2 * cost);
    CHECK(info_of(tenant).image_bytes == 2 * cost);
    CHECK(info_of(tenant).linear_refused == 1);
    CHECK(host.info().image_bytes == 40 * MIB);
    CHECK(p[0] == 3); // as it was
    CHECK(hak_wasm_memory_reset(host, p, images[0]) == 0);
    CHECK(p[20 * MIB - 1] == 1);
    for (hak_wasm_image *image : images)
        hak_wasm_image_drop(image);
    REQUIRE(hak_wasm_memory_free(host, p) == 0);
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_leave(scope.before);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    CHECK(host.info().image_bytes == 0);
}

TEST_CASE("an image outlives its tenant, and its group is charged that long", "[accounts]")
{
    for (hak_wasm_close how : {HAK_WASM_RETIRE, HAK_WASM_BULK}) {
        Host host;
        hak_wasm_tenant *group = tenant_of(host, 64 * MIB), *tenant = tenant_of(host, 0, group);
        hak_wasm_image *image;
        {
            Scope scope(tenant);
            char *p = memory_of(host, MIB);
            std::memset(p, 1, MIB);
            image = hak_wasm_image_take(host, p);
            REQUIRE(image != nullptr);
            REQUIRE(hak_wasm_memory_free(host, p) == 0);
        }
        hak_wasm_tenant_close(tenant, how);
        CHECK(info_of(group).linear_bytes == MIB + PAGE);
        char *q = static_cast<char *>(hak_wasm_memory_adopt(host, image));
        REQUIRE(q != nullptr);
        CHECK(q[MIB - 1] == 1);
        REQUIRE(hak_wasm_memory_free(host, q) == 0);
        hak_wasm_image_drop(image);
        CHECK(info_of(group).linear_bytes == 0);
        hak_wasm_tenant_close(group, HAK_WASM_RETIRE);
    }
}

TEST_CASE("a module is refused by each of its numbers, with the option and the number", "[accounts]")
{
    Host host;
    hak_wasm_tenant *tenant = tenant_of(host, 0);
    const std::string nothing("\0", 1), function("\x60\0\0", 3), five(section(1, 5, repeated(function, 5)));
    const std::string import("\1m\1f\0\0", 6), global("\x7f\0\x41\0\x0b", 5), export_("\1e\0\0", 4);
    const std::string wide = "\x60" + leb(4) + "\x7f\x7e\x7d\x7c" + leb(1) + "\x7f";
    const std::string locals = body(leb(2) + leb(3) + "\x7f" + leb(2) + "\x7e" + "\x0b");
    const struct {
        size_t hak_wasm_module_limits::*option;
        std::string binary; // whose number is 5
        const char *why;
    } cases[] = {
        {&hak_wasm_module_limits::types, HEADER + five, "has 5 types, and hak_wasm_module_limits.types"},
        {&hak_wasm_module_limits::types,
         HEADER + section(1, 2, "\x4e" + leb(4) + repeated(function, 4) + function), "has 5 types"},
        {&hak_wasm_module_limits::arity, HEADER + section(1, 2, function + wide),
         "has a type of 5 parameters and results, and hak_wasm_module_limits.arity"},
        {&hak_wasm_module_limits::imports, HEADER + section(2, 5, repeated(import, 5)),
         "has 5 imports, and hak_wasm_module_limits.imports"},
        {&hak_wasm_module_limits::functions, HEADER + section(3, 5, repeated(nothing, 5)),
         "has 5 functions, and hak_wasm_module_limits.functions"},
        {&hak_wasm_module_limits::globals, HEADER + section(6, 5, repeated(global, 5)),
         "has 5 globals, and hak_wasm_module_limits.globals"},
        {&hak_wasm_module_limits::exports, HEADER + section(7, 5, repeated(export_, 5)),
         "has 5 exports, and hak_wasm_module_limits.exports"},
        {&hak_wasm_module_limits::segments,
         HEADER + section(9, 2, std::string("\1\0\0\1\0\0", 6)) +
             section(11, 3, repeated(std::string("\1\0", 2), 3)),
         "has 5 segments, and hak_wasm_module_limits.segments"},
        {&hak_wasm_module_limits::locals, HEADER + section(10, 1, locals),
         "has a function of 5 locals, and hak_wasm_module_limits.locals"},
        {&hak_wasm_module_limits::body_bytes,
         HEADER + section(10, 2, body(nothing + "\x0b") + body(nothing + "\1\1\1\x0b")),
         "has a function of 5 bytes, and hak_wasm_module_limits.body_bytes"},
        {&hak_wasm_module_limits::blocks,
         HEADER + section(10, 2,
                          body(nothing + repeated(std::string("\2\0\x0b", 3), 3) +
                               std::string("\3\x80\1\x0b\x41\0\4\1\x0b\2\x40\x0b\2\x7f\x0b\x0b", 17)) +
                              body(nothing + std::string("\2\0\x0b\x0b", 4))),
         "has a function of 5 blocks with types of the module, and hak_wasm_module_limits.blocks"},
        {&hak_wasm_module_limits::depth,
         HEADER + section(10, 1,
                          body(nothing + repeated("\3\x40", 3) + "\2\x40" + repeated("\3\x40\x0b", 9) +
                               "\3\x40\3\x40" + repeated("\x0b", 6) + repeated("\3\x40", 4) +
                               repeated("\x0b", 5))),
         "has 5 loops within one another, and hak_wasm_module_limits.depth"},
        // memory.fill, memory.copy, table.grow, table.init, memory.init
        {&hak_wasm_module_limits::ranges,
         HEADER +
             section(10, 1,
                     body(nothing + std::string("\xfc\x0b\0\xfc\x0a\0\0\xfc\x0f\0\xfc\x0c\0\0\xfc\x08\0\0"
                                                "\xfc\x10\0\xfc\x09\0\xfc\x01\x0b",
                                                27))),
         "has 5 instructions on ranges, and hak_wasm_module_limits.ranges"},
        {&hak_wasm_module_limits::bytes, std::string("\0aotx", 5),
         "has 5 bytes, and hak_wasm_module_limits.bytes"},
    };
    for (const auto &c : cases) {
        const std::string &binary = c.binary;
        INFO(c.why);
        Limits limits;
        limits.*c.option = 5;
        REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
        CHECK(checked(tenant, binary) == "");
        limits.*c.option = 4;
        REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
        const std::string why = checked(tenant, binary);
        CHECK(why.find(c.why) != std::string::npos);
        CHECK(why.find("of \"payer\" is 4") != std::string::npos);
        limits.*c.option = HAK_NONE;
        REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
        CHECK(checked(tenant, binary).find("of \"payer\" is 0") != std::string::npos);
        REQUIRE(hak_wasm_tenant_modules(tenant, nullptr) == 0);
        CHECK(checked(tenant, binary) == "");
    }
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}

TEST_CASE("limits on modules are a parent's too, end with the tenant, and refuse what cannot be read",
          "[accounts]")
{
    Host host;
    hak_wasm_tenant *group = tenant_of(host, 0), *tenant = tenant_of(host, 0, group);
    const std::string three = HEADER + section(3, 3, std::string(3, '\0'));
    Limits limits;
    limits.functions = 2;
    REQUIRE(hak_wasm_tenant_modules(group, &limits) == 0);
    CHECK(checked(tenant, three) != "");
    limits.functions = 5;
    REQUIRE(hak_wasm_tenant_modules(tenant, &limits) == 0);
    CHECK(checked(tenant, three) != "");
    limits.functions = 3;
    REQUIRE(hak_wasm_tenant_modules(group, &limits) == 0);
    CHECK(checked(tenant, three) == "");
    // Sections that come twice, which no runtime takes, are counted twice.
    CHECK(checked(tenant, three + section(3, 3, std::string(3, '\0'))) != "");
    // Cut anywhere, and with counts that are not there.
    for (size_t n = 9; n < three.size(); n++)
        CHECK(checked(tenant, three.substr(0, n)) != "");
    CHECK(checked(tenant, HEADER + section(3, UINT64_MAX, "")) != "");
    CHECK(checked(tenant, HEADER + section(1, 1, std::string("\x77\0\0", 3))) != "");
    limits.size = 0;
    CHECK(hak_wasm_tenant_modules(tenant, &limits) == -1);
    CHECK(checked(tenant, three) == "");
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(group, HAK_WASM_RETIRE);
    // The next tenant in the context of one that was closed has none of its limits.
    for (int i = 0; i < 2; i++) {
        hak_wasm_tenant *next = hak_wasm_tenant_new(host, nullptr);
        CHECK(checked(next, three) == "");
        CHECK(hak_wasm_step_limit(next) == 0);
        limits = Limits();
        limits.functions = 1;
        REQUIRE(hak_wasm_tenant_modules(next, &limits) == 0);
        hak_wasm_tenant_steps(next, 7);
        CHECK(hak_wasm_step_limit(next) == 7);
        hak_wasm_tenant_close(next, HAK_WASM_RETIRE);
    }
}

TEST_CASE("the smallest limit on steps of a tenant and its parents holds", "[accounts]")
{
    Host host;
    hak_wasm_tenant *group = tenant_of(host, 0), *tenant = tenant_of(host, 0, group);
    CHECK(hak_wasm_step_limit(tenant) == 0);
    hak_wasm_tenant_steps(group, 100);
    CHECK(hak_wasm_step_limit(tenant) == 100);
    hak_wasm_tenant_steps(tenant, 200);
    CHECK(hak_wasm_step_limit(tenant) == 100);
    hak_wasm_tenant_steps(tenant, 50);
    CHECK(hak_wasm_step_limit(tenant) == 50);
    CHECK(hak_wasm_step_limit(group) == 100);
    hak_wasm_tenant_steps(tenant, 0);
    CHECK(hak_wasm_step_limit(tenant) == 100);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_tenant_close(group, HAK_WASM_RETIRE);
}
