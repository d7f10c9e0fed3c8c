/* Modules: read, compiled here or apart, and charged. */
#include "apart.h"
#include "stats.h"

#include <stdlib.h>

/* The tenant is charged with this much for the module, no longer with what it was charged before. */
static bool pay(hak_wasmtime_module *m, size_t bytes)
{
    if (bytes > m->charged && hak_wasm_charge(m->tenant, bytes - m->charged) != 0) return false;
    if (bytes < m->charged) hak_wasm_uncharge(m->tenant, m->charged - bytes);
    m->charged = bytes;
    return true;
}

/* It has pages of its own. */
static size_t code_bytes(const wasmtime_module_t *module)
{
    enum { PAGE = 4096 };
    void *from, *to;
    wasmtime_module_image_range(module, &from, &to);
    return ((size_t)((char *)to - (char *)from) + PAGE - 1) / PAGE * PAGE;
}

/* Folders keep code under this name. wasmtime itself refuses code of another version or configuration. */
static const char runtime[] = "wasmtime " WASMTIME_VERSION;

/* Code that is kept, if the engine takes it. *error: the folder cannot be used. */
static void take_kept(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                      wasmtime_error_t **error)
{
    char why[256];
    hak_wasm_code code;
    const int found = hak_wasm_code_get(folder, runtime, bytes, size, &code, why, sizeof why);
    if (found < 0) *error = wasmtime_error_new(why);
    if (found <= 0) return;
    wasmtime_error_t *other = wasmtime_module_deserialize(m->engine, code.bytes, code.size, &m->module);
    if (other) {
        wasmtime_error_delete(other);
        m->module = NULL;
    }
    hak_wasm_code_free(&code);
}

/* A folder without room is no reason to refuse a module that is compiled. */
static void keep(const hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size)
{
    wasm_byte_vec_t code;
    wasmtime_error_t *error = wasmtime_module_serialize(m->module, &code);
    if (error) {
        wasmtime_error_delete(error);
        return;
    }
    hak_wasm_code_put(folder, runtime, bytes, size, code.data, code.size, NULL, 0);
    wasm_byte_vec_delete(&code);
}

/* folder NULL = none. */
static void make_code(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                      wasmtime_error_t **error)
{
    if (folder) take_kept(m, folder, bytes, size, error);
    if (m->module || *error) return;
    *error = wasmtime_module_new(m->engine, bytes, size, &m->module);
    if (!*error && folder) keep(m, folder, bytes, size);
}

/* With its exports the copy can be over a limit of wasmtime's. */
static void forget_copy(hak_wasmtime_module *m)
{
    m->refused = m->alone_refused = "a copy of it that shows its state is over a limit of wasmtime's";
    m->globals = m->functions = 0;
    m->tables_change = false;
}

/* Compiles the module itself, of which the copy failed. Only a valid module is worth a second try; *error is
 * of the one that is tried last. */
static void make_without_copy(hak_wasmtime_module *m, const char *folder, const uint8_t *bytes, size_t size,
                              wasmtime_error_t **error)
{
    wasmtime_error_delete(*error);
    *error = wasmtime_module_validate(m->engine, bytes, size);
    if (*error) return;
    forget_copy(m);
    make_code(m, folder, bytes, size, error);
}

/* In this process. */
static void make_here(hak_wasmtime_module *m, const hkw_module *binary, const uint8_t *bytes, size_t size,
                      const char *folder, wasmtime_error_t **error)
{
    make_code(m, folder, binary->bytes ? binary->bytes : bytes, binary->bytes ? binary->size : size, error);
    if (*error && binary->bytes) make_without_copy(m, folder, bytes, size, error);
}

static const char code_too_large[] = "hakmem: the module's code does not fit into the tenant's limit";

/* By another program, which tries without the copy itself. */
static void make_apart(hak_wasmtime_module *m, const hkw_module *binary, const uint8_t *bytes, size_t size,
                       hkw_apart *apart, wasmtime_error_t **error)
{
    const char *folder = apart->options.folder;
    const uint8_t *compiled = binary->bytes ? binary->bytes : bytes;
    size_t compiled_size = binary->bytes ? binary->size : size;
    hkw_code code = {0};
    if (folder) take_kept(m, folder, compiled, compiled_size, error);
    if (*error) apart->info.outcome = HAK_WASMTIME_APART_START;
    if (m->module || *error) return;
    *error = hkw_apart_compile(apart, m->host, binary, bytes, size, &code);
    if (*error) return;
    if (code.kind == HKW_CODE_OF_MODULE && binary->bytes) {
        forget_copy(m);
        compiled = bytes;
        compiled_size = size;
    }
    /* wasmtime makes a copy of the code, which is within the limit as well. */
    if (!pay(m, code.size)) {
        *error = wasmtime_error_new(code_too_large);
    } else if ((*error = wasmtime_module_deserialize(m->engine, code.bytes, code.size, &m->module)) != NULL) {
        *error = hkw_apart_not_taken(apart, *error);
    } else if (folder) {
        hak_wasm_code_put(folder, runtime, compiled, compiled_size, code.bytes, code.size, NULL, 0);
    }
    hkw_code_end(&code);
}

/* apart NULL = in this process, with the folder, NULL = none. */
static const char *compile(hak_wasmtime_module *m, const hkw_module *binary, const uint8_t *bytes,
                           size_t size, const char *folder, hkw_apart *apart, wasmtime_error_t **error)
{
    /* Code is larger than what it is made of: who has no room for that has none for the code. */
    if (!pay(m, size)) return "hakmem: the module does not fit into the tenant's limit";
    if (apart) make_apart(m, binary, bytes, size, apart, error);
    else make_here(m, binary, bytes, size, folder, error);
    if (*error) return NULL;
    if (binary->broken) return binary->broken;
    if (binary->memories > HAK_WASMTIME_MEMORIES)
        return "hakmem: the module has more linear memories than an instance may have";
    if (!pay(m, code_bytes(m->module) + (size_t)binary->kept)) return code_too_large;
    return NULL;
}

static hak_wasmtime_module *read_module(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                        const wasmtime_linker_t *linker, const uint8_t *bytes, size_t size,
                                        const char *folder, hkw_apart *apart, wasmtime_error_t **error)
{
    hak_wasm_host *host = hak_wasm_tenant_host(tenant);
    hkw_module binary;
    hkw_module_read(bytes, size, linker == NULL, &binary);
    hak_wasmtime_module *m = hak_wasm_calloc(host, 1, sizeof *m);
    if (!m) {
        *error = wasmtime_error_new("hakmem: no memory for a module");
        if (apart) apart->info.outcome = HAK_WASMTIME_APART_START;
    } else {
        m->host = host;
        m->tenant = tenant;
        m->engine = engine;
        m->globals = binary.globals;
        m->alone_refused = binary.refused ? binary.refused : binary.borrowed;
        m->refused = binary.refused;
        m->tables = binary.tables;
        m->table_count = binary.table_count;
        m->tables_change = binary.tables_change;
        m->tables_grow = binary.tables_grow;
        m->changes_table = binary.changes_table;
        m->exports_table = binary.exports_table;
        m->functions = binary.functions;
        m->passive = binary.passive;
        m->own = binary.own;
        m->memories = binary.memories;
        binary.tables = NULL;
        const char *why = compile(m, &binary, bytes, size, folder, apart, error);
        if (why) *error = wasmtime_error_new(why);
        if (!*error && linker) *error = wasmtime_linker_instantiate_pre(linker, m->module, &m->linked);
        if (*error) {
            hak_wasmtime_module_delete(m);
            m = NULL;
        }
    }
    free(binary.bytes);
    free(binary.tables);
    return m;
}

static hak_wasmtime_module *new_module(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                       const wasmtime_linker_t *linker, const uint8_t *bytes, size_t size,
                                       const char *folder, hkw_apart *apart, wasmtime_error_t **error)
{
    char why[256];
    *error = NULL;
    if (!bytes || size == 0) {
        *error = wasmtime_error_new("hakmem: there is no module");
        return NULL;
    }
    if (hak_wasm_module_check(tenant, bytes, size, why, sizeof why) != 0) {
        *error = wasmtime_error_new(why);
        return NULL;
    }
    hak_wasm_scope before = hak_wasm_enter(tenant, HAK_WASM_LOAD);
    hak_wasmtime_module *m = read_module(tenant, engine, linker, bytes, size, folder, apart, error);
    hak_wasm_leave(before);
    return m;
}

hak_wasmtime_module *hak_wasmtime_module_load(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                              const wasmtime_linker_t *linker, const uint8_t *bytes,
                                              size_t size, const char *folder, wasmtime_error_t **error)
{
    wasmtime_error_t *unasked = NULL;
    hak_wasmtime_module *m =
        new_module(tenant, engine, linker, bytes, size, folder, NULL, error ? error : &unasked);
    if (unasked) wasmtime_error_delete(unasked);
    return m;
}

hak_wasmtime_module *hak_wasmtime_module_new(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                             const wasmtime_linker_t *linker, const uint8_t *bytes,
                                             size_t size, wasmtime_error_t **error)
{
    return hak_wasmtime_module_load(tenant, engine, linker, bytes, size, NULL, error);
}

hak_wasmtime_module *hak_wasmtime_module_apart(hak_wasm_tenant *tenant, wasm_engine_t *engine,
                                               const wasmtime_linker_t *linker, const uint8_t *bytes,
                                               size_t size, const hak_wasmtime_apart_options *options,
                                               hak_wasmtime_apart_info *info, wasmtime_error_t **error)
{
    hkw_apart apart;
    wasmtime_error_t *of_nobody = NULL;
    hak_wasmtime_module *m = NULL;
    if (!error) error = &of_nobody;
    const char *why = hkw_apart_begin(&apart, options);
    if (why) {
        *error = wasmtime_error_new(why);
        apart.info.outcome = HAK_WASMTIME_APART_START;
    } else {
        m = new_module(tenant, engine, linker, bytes, size, NULL, &apart, error);
        if (!m && apart.info.outcome == HAK_WASMTIME_APART_DONE)
            apart.info.outcome = HAK_WASMTIME_APART_REFUSED;
    }
    if (of_nobody) wasmtime_error_delete(of_nobody);
    if (info) hkw_tell(info, &apart.info, sizeof apart.info);
    return m;
}

void hak_wasmtime_module_delete(hak_wasmtime_module *module)
{
    if (!module) return;
    if (module->linked) wasmtime_instance_pre_delete(module->linked);
    if (module->module) wasmtime_module_delete(module->module);
    free(module->tables);
    hak_wasm_uncharge(module->tenant, module->charged);
    hak_wasm_free(module->host, module);
}

const char *hak_wasmtime_module_refused(const hak_wasmtime_module *module)
{
    return module->alone_refused;
}
