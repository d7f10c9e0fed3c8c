// Hostile guests and modules under WAMR: nothing over a limit, nothing left, and the next tenant is served.
#include "binary_test.h"
#include "wamr_test.h"

using namespace test;

namespace
{

constexpr size_t LIMIT = 4 * MIB;

Tenant limited(hak_wasm_host *host, const char *name)
{
    TenantOptions options;
    options.name = name;
    options.children = true; // a quota, whose count includes every page of the context
    options.limits.linear_bytes = LIMIT;
    options.limits.heap_bytes = LIMIT;
    options.limits.instances = 20;
    return new_tenant(host, &options);
}

void is_within(hak_wasm_tenant *tenant)
{
    const hak_wasm_tenant_info info = info_of(tenant);
    CHECK(info.linear_peak <= LIMIT);
    CHECK(info.heap_committed <= LIMIT);
    CHECK(info.instances_peak <= 20);
}

void serve(hak_wasm_tenant *tenant)
{
    Module module(tenant, "small");
    Guest guest(tenant, module);
    INFO(guest.error);
    REQUIRE(guest.guest != nullptr);
    CHECK(guest.call("grow", 1, 2) == 3);
    CHECK(guest.call("pages") == 5);
    CHECK(guest.ok());
}

const std::string I32 = "\x7f", NO_TYPE = std::string("\x60\0\0", 3), END = "\x0b", NO_LOCALS("\0", 1);

std::string functions_with(const std::string &code, unsigned n = 1)
{
    return HEADER + section(1, 1, NO_TYPE) + section(3, n, repeated(std::string("\0", 1), n)) +
           section(10, n, repeated(body(code), n));
}

struct Bomb {
    const char *name;
    std::string binary;
};

std::vector<Bomb> bombs()
{
    const std::string empty = NO_LOCALS + END, zero("\0", 1);
    const std::string block = "\x02\x40", loop = "\x03\x40", branch = "\x0c";
    std::string exports;
    for (unsigned i = 0; i < 4000; i++) {
        const std::string name = "f" + std::to_string(i);
        exports += leb(name.size()) + name + zero + zero;
    }
    const std::string one_function = HEADER + section(1, 1, NO_TYPE) + section(3, 1, zero);
    return {
        {"many functions", functions_with(empty, 100000)},
        {"a body of a megabyte", functions_with(NO_LOCALS + repeated("\x41\x2a\x1a", 300000) + END)},
        {"many types",
         HEADER + section(1, 50000, repeated("\x60" + leb(16) + repeated(I32, 16) + zero, 50000))},
        {"a type of many results",
         HEADER + section(1, 1, "\x60" + leb(1000) + repeated(I32, 1000) + leb(1000) + repeated(I32, 1000))},
        {"many globals", HEADER + section(6, 200000, repeated(I32 + "\x01\x41" + zero + END, 200000))},
        {"many exports", one_function + section(7, 4000, exports) + section(10, 1, body(empty))},
        {"many imports", HEADER + section(1, 1, NO_TYPE) +
                             section(2, 50000,
                                     repeated("\x01"
                                              "a\x01"
                                              "b" +
                                                  zero + zero,
                                              50000))},
        {"more locals than numbers", functions_with(leb(1) + leb(0xffffffff) + I32 + END)},
        {"all locals that there may be", functions_with(leb(1) + leb(50000) + I32 + END, 50)},
        {"blocks in blocks", functions_with(NO_LOCALS + repeated(block, 100000) + repeated(END, 100001))},
        {"loops in loops", functions_with(NO_LOCALS + repeated(loop, 20000) + repeated(END, 20001))},
        {"a branch of many ways", functions_with(NO_LOCALS + block + ("\x41" + zero) + "\x0e" + leb(200000) +
                                                 repeated(zero, 200001) + END + END)},
        {"a branch of more ways than bytes",
         functions_with(NO_LOCALS + block + ("\x41" + zero) + "\x0e" + leb(0x7fffffff) + repeated(zero, 100) +
                        END + END)},
        {"branches out of everything",
         functions_with(NO_LOCALS + repeated(block, 300) + repeated(branch + leb(299), 10000) +
                        repeated(END, 301))},
        {"a table of all elements", HEADER + section(4, 1, "\x70" + zero + leb(0xffffffff))},
        {"a table of a million elements", HEADER + section(4, 1, "\x70" + zero + leb(1000000))},
        {"a memory of all pages", HEADER + section(5, 1, zero + leb(65536))},
        {"a memory over the limit", HEADER + section(5, 1, zero + leb(LIMIT / WASM_PAGE + 1))},
        {"data beyond the memory",
         HEADER + section(5, 1, zero + leb(1)) +
             section(11, 1, zero + "\x41" + leb(0x7ffffff) + END + leb(5) + "12345")},
        {"many segments", HEADER + section(5, 1, zero + leb(1)) +
                              section(11, 50000, repeated(zero + "\x41" + zero + END + leb(1) + "x", 50000))},
        {"more types than bytes", HEADER + section(1, 0xffffffff, NO_TYPE)},
        {"more functions than bytes", HEADER + section(1, 1, NO_TYPE) + section(3, 0x7fffffff, zero) +
                                          section(10, 0x7fffffff, body(empty))},
        {"more globals than bytes", HEADER + section(6, 0xffffffff, I32 + "\x01\x41" + zero + END)},
        {"more segments than bytes", HEADER + section(5, 1, zero + leb(1)) + section(11, 0xfffffff, zero)},
        {"a section of more bytes than there are", HEADER + "\x0a" + leb(0xfffffff0)},
        {"a name without end", HEADER + section(7, 1, leb(0xfffffff0) + "abc")},
    };
}

} // namespace

TEST_CASE("whatever a guest does, it stays within its limits, and others are served", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker"), next = limited(host, "next");
    hak_wasm_tenant_steps(attacker.get(), 3000000);
    const struct {
        const char *name, *error; // NULL: it ends
        uint32_t arguments;
    } acts[] = {{"pages", nullptr, 0},
                {"elements", nullptr, 0},
                {"deep", "stack overflow", 0},
                {"deep_pages", "stack overflow", 0},
                {"deep_elements", "stack overflow", 0},
                {"deep_locals", "stack overflow", 8},
                {"spin", "instruction limit exceeded", 0},
                {"beyond", "out of bounds", 0},
                {"wrong", "", 0}};
    {
        Module module(attacker.get(), "hostile");
        for (const auto &act : acts) {
            INFO(act.name);
            Guest guest(attacker.get(), module);
            REQUIRE(guest.guest != nullptr);
            const char *why;
            hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
            REQUIRE(fresh != nullptr);
            for (int i = 0; i < 3; i++) {
                uint32_t argv[8] = {1, 2, 3, 4, 5, 6, 7, 8};
                const bool ended = hak_wasm_wamr_call(guest, act.name, act.arguments, argv);
                CHECK(ended == (act.error == nullptr));
                if (!ended) {
                    const std::string error = hak_wasm_wamr_exception(guest);
                    INFO(error);
                    CHECK(error.find(act.error ? act.error : "none") != std::string::npos);
                }
                is_within(attacker.get());
                if (std::strcmp(act.name, "pages") == 0) CHECK(argv[0] == LIMIT / WASM_PAGE - 1);
                serve(next.get());
                CHECK(hak_wasm_wamr_reset(guest, fresh) == 0);
                CHECK(guest.call("answer") == 42);
            }
            hak_wasm_wamr_drop(fresh);
        }
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
    CHECK(info_of(attacker.get()).linear_bytes == 0);
}

TEST_CASE("as many instances as a tenant can have are within its limits", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker"), next = limited(host, "next");
    {
        Module module(attacker.get(), "hostile");
        std::vector<std::unique_ptr<Guest>> guests;
        do {
            guests.push_back(std::make_unique<Guest>(attacker.get(), module));
            if (guests.back()->guest) guests.back()->call("elements");
        } while (guests.back()->guest && guests.size() < 100);
        CHECK(guests.back()->guest == nullptr);
        CHECK(guests.size() > 2);
        is_within(attacker.get());
        for (auto &guest : guests)
            if (guest->guest) guest->call("pages");
        is_within(attacker.get());
        serve(next.get());
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
    CHECK(info_of(attacker.get()).linear_bytes == 0);
}

TEST_CASE("no module takes more than its tenant may have while WAMR reads it", "[wamr]")
{
    Wamr host;
    Tenant next = limited(host, "next");
    size_t taken = 0, refused = 0;
    for (const Bomb &bomb : bombs()) {
        INFO(bomb.name);
        Tenant attacker = limited(host, "attacker");
        hak_wasm_tenant_steps(attacker.get(), 1000000);
        {
            const Bytes bytes(bomb.binary.begin(), bomb.binary.end());
            Module module(attacker.get(), bytes);
            is_within(attacker.get());
            if (module.module) {
                taken++;
                Guest guest(attacker.get(), module);
                is_within(attacker.get());
            } else {
                refused++;
                CHECK(module.error[0] != 0);
            }
            serve(next.get());
        }
        CHECK(info_of(attacker.get()).heap_live == 0);
        CHECK(info_of(attacker.get()).linear_bytes == 0);
        CHECK(info_of(attacker.get()).instances == 0);
    }
    // Most are what a module may be; it is the limits that keep them out.
    CHECK(taken >= 3);
    CHECK(refused >= 10);
}

TEST_CASE("the limits that the guide names keep them out before WAMR reads them", "[wamr]")
{
    Wamr host;
    Tenant attacker = limited(host, "attacker");
    hak_wasm_module_limits limits = HAK_WASM_MODULE_LIMITS_INIT;
    limits.bytes = MIB;
    limits.types = 500;
    limits.arity = 32;
    limits.imports = 200;
    limits.functions = 5000;
    limits.globals = limits.exports = 1000;
    limits.segments = 500;
    limits.locals = 256;
    limits.body_bytes = 64 << 10;
    limits.blocks = 100;
    limits.depth = 16;
    REQUIRE(hak_wasm_tenant_modules(attacker.get(), &limits) == 0);
    for (const Bomb &bomb : bombs()) {
        INFO(bomb.name);
        const Bytes bytes(bomb.binary.begin(), bomb.binary.end());
        Module module(attacker.get(), bytes);
        // A table or a memory is the affair of the instance.
        const std::string name = bomb.name;
        const bool passes = name.find("table") != std::string::npos ||
                            name.find("memory") != std::string::npos || name == "branches out of everything";
        if (!passes) CHECK(module.module == nullptr);
        is_within(attacker.get());
    }
    CHECK(info_of(attacker.get()).heap_live == 0);
}
