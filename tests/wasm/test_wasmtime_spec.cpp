// The specification's tests under wasmtime, three times with resets in between.
#include "wasmtime_test.h"

#include <memory>

#include "spec.h"

using namespace test;

namespace
{

wasm_trap_t *number(void *n, wasmtime_caller_t *, const wasmtime_val_t *, size_t, wasmtime_val_t *results,
                    size_t count)
{
    if (count == 1) {
        results[0].kind = WASMTIME_I32;
        results[0].of.i32 = int32_t(reinterpret_cast<intptr_t>(n));
    }
    return nullptr;
}

// The functions of other modules that the scripts import.
void define_functions(wasmtime_linker_t *linker)
{
    for (int i = 0; i < 5; i++) {
        wasm_functype_t *type = wasm_functype_new_0_1(wasm_valtype_new_i32());
        const std::string name = "ef" + std::to_string(i);
        require_none(wasmtime_linker_define_func(linker, "a", 1, name.data(), name.size(), type, number,
                                                 reinterpret_cast<void *>(intptr_t(i)), nullptr));
        wasm_functype_delete(type);
    }
    wasm_functype_t *none = wasm_functype_new_0_0(), *one = wasm_functype_new_1_0(wasm_valtype_new_i32());
    require_none(
        wasmtime_linker_define_func(linker, "spectest", 8, "print", 5, none, number, nullptr, nullptr));
    require_none(
        wasmtime_linker_define_func(linker, "spectest", 8, "print_i32", 9, one, number, nullptr, nullptr));
    wasm_functype_delete(none);
    wasm_functype_delete(one);
}

class SpecGuest
{
  public:
    SpecGuest(Runtime &runtime, hak_wasm_tenant *tenant, const std::string &path) : tenant_(tenant)
    {
        std::ifstream in(path, std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(in), {});
        wasmtime_error_t *error;
        module_ =
            hak_wasmtime_module_new(tenant, runtime.engine, runtime.linker,
                                    reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(), &error);
        require_none(error);
        begin();
        const char *why;
        image_ = hak_wasmtime_image_take(instance_, &why);
        if (image_ == nullptr) REQUIRE(refused() == why);
        bytes_ = info_of(tenant).linear_bytes;
        elements_ = elements();
    }
    SpecGuest(const SpecGuest &) = delete;
    SpecGuest &operator=(const SpecGuest &) = delete;
    ~SpecGuest()
    {
        hak_wasmtime_instance_close(instance_);
        hak_wasmtime_image_drop(image_);
        hak_wasmtime_module_delete(module_);
    }

    std::string refused() const
    {
        const char *why = hak_wasmtime_module_refused(module_);
        return why ? why : "";
    }
    // A memory or a table that grew cannot shrink: then a new instance is brought to the image.
    void reset()
    {
        const bool grew = info_of(tenant_).linear_bytes > bytes_ || elements() > elements_;
        REQUIRE(hak_wasmtime_reset(instance_, image_) == (grew ? -1 : 0));
        if (!grew) return;
        hak_wasmtime_instance_close(instance_);
        begin();
        REQUIRE(hak_wasmtime_reset(instance_, image_) == 0);
    }
    void run(const SpecCommand &command)
    {
        wasmtime_extern_t item;
        wasmtime_context_t *context = hak_wasmtime_instance_context(instance_);
        REQUIRE(wasmtime_instance_export_get(context, hak_wasmtime_instance_get(instance_),
                                             command.function.data(), command.function.size(), &item));
        wasmtime_val_t arguments[SPEC_VALUES] = {}, results[SPEC_VALUES] = {};
        for (size_t i = 0; i < command.arguments.size(); i++) {
            const SpecValue &v = command.arguments[i];
            arguments[i].kind = kind(v.type);
            if (arguments[i].kind == WASMTIME_EXTERNREF) refer(context, v, &arguments[i].of.externref);
            else std::memcpy(&arguments[i].of, &v.bits, sizeof v.bits);
        }
        wasm_trap_t *trap;
        require_none(hak_wasmtime_call(instance_, &item.of.func, arguments, command.arguments.size(), results,
                                       results_of(context, item.of.func), &trap));
        for (wasmtime_val_t &argument : arguments)
            wasmtime_val_unroot(&argument);
        const bool trapped = trap != nullptr;
        if (trapped) wasm_trap_delete(trap);
        REQUIRE(trapped == command.traps);
        for (size_t i = 0; !trapped && i < command.results.size(); i++) {
            REQUIRE(results[i].kind == kind(command.results[i].type));
            REQUIRE(is_same(context, results[i], command.results[i]));
            wasmtime_val_unroot(&results[i]);
        }
    }

  private:
    void begin()
    {
        wasmtime_error_t *error;
        wasm_trap_t *trap;
        instance_ = hak_wasmtime_instance_new(tenant_, module_, nullptr, nullptr, &error, &trap);
        require_none(error);
        REQUIRE(trap == nullptr);
    }
    // Of all tables that may change, which the module's copy exports.
    uint64_t elements()
    {
        uint64_t sum = 0;
        for (int n = 0;; n++) {
            const std::string name = "hak:table:" + std::to_string(n);
            wasmtime_extern_t item;
            wasmtime_context_t *context = hak_wasmtime_instance_context(instance_);
            if (!wasmtime_instance_export_get(context, hak_wasmtime_instance_get(instance_), name.data(),
                                              name.size(), &item))
                return sum;
            sum += wasmtime_table_size(context, &item.of.table);
        }
    }
    static wasmtime_valkind_t kind(const std::string &type)
    {
        return type == "i32"         ? WASMTIME_I32
               : type == "i64"       ? WASMTIME_I64
               : type == "f32"       ? WASMTIME_F32
               : type == "funcref"   ? WASMTIME_FUNCREF
               : type == "externref" ? WASMTIME_EXTERNREF
                                     : WASMTIME_F64;
    }
    static void refer(wasmtime_context_t *context, const SpecValue &value, wasmtime_externref_t *out)
    {
        if (value.null) wasmtime_externref_set_null(out);
        else REQUIRE(wasmtime_externref_new(context, reinterpret_cast<void *>(value.bits), nullptr, out));
    }
    static bool is_same(wasmtime_context_t *context, const wasmtime_val_t &result, const SpecValue &value)
    {
        uint64_t bits = 0;
        switch (result.kind) {
        case WASMTIME_FUNCREF:
            return (result.of.funcref.store_id == 0) == value.null;
        case WASMTIME_EXTERNREF:
            if (value.null || wasmtime_externref_is_null(&result.of.externref))
                return value.null == wasmtime_externref_is_null(&result.of.externref);
            return wasmtime_externref_data(context, &result.of.externref) ==
                   reinterpret_cast<void *>(value.bits);
        case WASMTIME_I32:
        case WASMTIME_F32:
            bits = uint32_t(result.of.i32);
            break;
        default:
            bits = uint64_t(result.of.i64);
        }
        return value.matches(bits);
    }
    static size_t results_of(wasmtime_context_t *context, const wasmtime_func_t &function)
    {
        wasm_functype_t *type = wasmtime_func_type(context, &function);
        const size_t count = wasm_functype_results(type)->size;
        wasm_functype_delete(type);
        return count;
    }

    hak_wasm_tenant *tenant_;
    hak_wasmtime_module *module_ = nullptr;
    hak_wasmtime_instance *instance_ = nullptr;
    hak_wasmtime_image *image_ = nullptr;
    size_t bytes_ = 0;
    uint64_t elements_ = 0;
};

} // namespace

TEST_CASE("the specification's tests pass three times with resets in between", "[spec]")
{
    Runtime runtime;
    define_functions(runtime.linker);
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(runtime.host, nullptr);
    const SpecCounts counts = run_spec<SpecGuest>(
        [&](const std::string &path) { return std::make_unique<SpecGuest>(runtime, tenant, path); });
    CHECK(counts.restored == 662);
    CHECK(counts.refused == 18);
    CHECK(counts.commands == 70020);
    CHECK(info_of(tenant).linear_bytes == 0);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
}
