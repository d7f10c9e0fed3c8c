/* A host that links the library of reports beside bindings, all of them static: each has the writers, and no name
 * of theirs may be defined twice. */
#include <hakmem/report.h>
#include <hakmem/wasm_profile.h>
#ifdef WITH_LUA
#include <hakmem/lua.h>
#endif

static int put(void *to, const char *bytes, size_t n)
{
    (void)bytes;
    *(size_t *)to += n;
    return 0;
}

int main(void)
{
    hak_ctx *ctx = hak_ctx_new(NULL, NULL);
    size_t size = 0;
    int error = ctx ? hak_report_put(put, &size, &ctx, 1, NULL) : 1;
    hak_wasm_host *host = hak_wasm_host_new(NULL);
    hak_wasm_tenant *tenant = host ? hak_wasm_tenant_new(host, NULL) : NULL;
    FILE *out = tmpfile();
    if (!tenant || !out || hak_wasm_report_json(tenant, out) != 0) error = 1;
    if (out) fclose(out);
    hak_wasm_tenant_close(tenant, HAK_WASM_RETIRE);
    hak_wasm_host_delete(host);
#ifdef WITH_LUA
    lua_State *L = hak_lua_newstate(NULL);
    if (!L) error = 1;
    if (L) lua_close(L);
#endif
    hak_ctx_destroy(ctx);
    return error || size < 100;
}
