/* host guest.wasm: a request to a guest, and a reset that forgets it. */
#include <hakmem/wasm_wamr.h>

#include <stdio.h>

static uint32_t call(hak_wasm_wamr *guest, const char *function, uint32_t argument)
{
    uint32_t argv[1] = {argument};
    if (!hak_wasm_wamr_call(guest, function, function[0] == 'p', argv)) printf("%s fails\n", function);
    return argv[0];
}

int main(int argc, char **argv)
{
    static uint8_t bytes[4096];
    char error[128] = "";
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) return 2;
    uint32_t size = (uint32_t)fread(bytes, 1, sizeof bytes, file);
    fclose(file);

    hak_wasm_host *host = hak_wasm_host_new(NULL);
    hak_wasm_tenant *tenant = hak_wasm_tenant_new(host, NULL);
    RuntimeInitArgs args = {0};
    hak_wasm_wamr_args(host, &args);
    if (!tenant || !wasm_runtime_full_init(&args)) return 3;
    wasm_module_t module = hak_wasm_wamr_load(tenant, bytes, size, error, sizeof error);
    hak_wasm_wamr *guest = module ? hak_wasm_wamr_open(tenant, module, 16384, error, sizeof error) : NULL;
    if (!guest) {
        puts(error);
        return 4;
    }
    const char *why = "";
    hak_wasm_wamr_snapshot *fresh = hak_wasm_wamr_take(guest, &why);
    call(guest, "put", 4711);
    uint32_t before = call(guest, "get", 0);
    int reset = fresh ? hak_wasm_wamr_reset(guest, fresh) : -1;
    uint32_t after = call(guest, "get", 0);
    printf("%u %d %d%s\n", (unsigned)before, reset, (int)after, why ? why : "");
    hak_wasm_wamr_drop(fresh);
    hak_wasm_wamr_close(guest);
    wasm_runtime_unload(module);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    wasm_runtime_destroy();
    hak_wasm_host_delete(host);
    return 0;
}
