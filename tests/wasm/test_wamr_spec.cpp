// The specification's tests under WAMR, three times with resets in between.
#include "wamr_test.h"

#include "spec.h"

using namespace test;

namespace
{

template <uint32_t N>
uint32_t function(wasm_exec_env_t)
{
    return N;
}

void print(wasm_exec_env_t)
{
}

void print_number(wasm_exec_env_t, uint32_t)
{
}

class SpecGuest
{
  public:
    SpecGuest(hak_wasm_tenant *tenant, const std::string &path)
        : module_(tenant, read_file(path)), guest_(tenant, module_)
    {
        // WAMR does not load one module, since a name of an export has a zero byte. It counts as refused.
        const bool odd = path.substr(path.rfind('/') + 1) == "names.2.wasm";
        INFO(module_.error << guest_.error);
        REQUIRE((guest_.guest != nullptr) == !odd);
        if (odd) why_ = guest_.error;
        else snapshot_ = hak_wasm_wamr_take(guest_, &why_);
    }
    SpecGuest(const SpecGuest &) = delete;
    SpecGuest &operator=(const SpecGuest &) = delete;
    ~SpecGuest()
    {
        hak_wasm_wamr_drop(snapshot_);
    }

    std::string refused() const
    {
        return snapshot_ ? "" : why_;
    }
    void reset()
    {
        REQUIRE(hak_wasm_wamr_reset(guest_, snapshot_) == 0);
    }
    void run(const SpecCommand &command)
    {
        uint32_t cells[SPEC_VALUES * 2] = {};
        uint32_t count = 0;
        for (const SpecValue &v : command.arguments) {
            const uint64_t bits = v.null ? UINT64_MAX : v.bits;
            cells[count++] = uint32_t(bits);
            if (is_wide(v)) cells[count++] = uint32_t(bits >> 32);
        }
        const bool ok = hak_wasm_wamr_call(guest_, command.function.c_str(), SPEC_VALUES * 2, cells);
        const char *exception = hak_wasm_wamr_exception(guest_);
        INFO((exception ? exception : "no exception"));
        REQUIRE(ok == !command.traps);
        size_t at = 0;
        for (size_t i = 0; ok && i < command.results.size(); i++) {
            const SpecValue &result = command.results[i];
            uint64_t bits = cells[at++];
            if (is_wide(result)) bits |= uint64_t(cells[at++]) << 32;
            if (result.null) REQUIRE(bits == (is_wide(result) ? 0 : UINT32_MAX));
            else REQUIRE((result.matches(bits) || passes_on(command, result, bits)));
        }
    }

  private:
    // WAMR gives a signalling NaN among the arguments back as it is, where the specification wants a quiet one.
    static bool passes_on(const SpecCommand &command, const SpecValue &result, uint64_t bits)
    {
        const bool nan = result.type == "f32" ? (bits & 0x7fffffff) > 0x7f800000
                                              : (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
        return result.nan && nan &&
               std::any_of(command.arguments.begin(), command.arguments.end(),
                           [&](const SpecValue &v) { return v.bits == bits; });
    }
    // WAMR passes an external reference as a pointer of the host, a function as its number.
    static bool is_wide(const SpecValue &v)
    {
        return v.type == "i64" || v.type == "f64" || v.type == "externref";
    }
    Module module_;
    Guest guest_;
    const char *why_ = "";
    hak_wasm_wamr_snapshot *snapshot_ = nullptr;
};

} // namespace

TEST_CASE("the specification's tests pass three times with resets in between", "[spec]")
{
    // WAMR knows these for the life of the runtime.
    static NativeSymbol functions[] = {
        {"ef0", reinterpret_cast<void *>(function<0>), "()i", nullptr},
        {"ef1", reinterpret_cast<void *>(function<1>), "()i", nullptr},
        {"ef2", reinterpret_cast<void *>(function<2>), "()i", nullptr},
        {"ef3", reinterpret_cast<void *>(function<3>), "()i", nullptr},
        {"ef4", reinterpret_cast<void *>(function<4>), "()i", nullptr},
    };
    static NativeSymbol prints[] = {{"print", reinterpret_cast<void *>(print), "()", nullptr},
                                    {"print_i32", reinterpret_cast<void *>(print_number), "(i)", nullptr}};
    Wamr host;
    REQUIRE(wasm_runtime_register_natives("a", functions, 5));
    REQUIRE(wasm_runtime_register_natives("spectest", prints, 2));
    Tenant tenant = new_tenant(host);
    const SpecCounts counts = run_spec<SpecGuest>(
        [&](const std::string &path) { return std::make_unique<SpecGuest>(tenant.get(), path); });
    CHECK(counts.restored == 670);
    CHECK(counts.refused == 10);
    CHECK(counts.commands == 68985);
    CHECK(info_of(tenant.get()).linear_bytes == 0);
}
