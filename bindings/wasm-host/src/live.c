/* A host that is looked at while it runs. Who embeds it knows which tenants there are, and keeps them
 * open. */
#include "profile.h"

#include "common/live.h"
#include "common/report_json.h"

#include <stdio.h>
#include <unistd.h>

struct hak_wasm_look {
    hkc_parts *parts; /* NULL = of each tenant its report, else where its memory is */
    hkc_json *w;
    int error; /* the first one */
};

static struct {
    hak_wasm_tenants_fn *tenants; /* NULL = nobody may look */
    void *user;
    pid_t process;   /* of the last start: each process has one, a forked child its own */
    hkc_names names; /* stay for the next report */
} live;

void hak_wasm_look_at(hak_wasm_look *look, hak_wasm_tenant *tenant)
{
    if (!tenant) return;
    if (look->parts) {
        hkw_parts_tenant(look->parts, tenant);
        return;
    }
    const int error = hkw_report_tenant(look->w, tenant, &live.names);
    if (!look->error) look->error = error;
}

static int report(void *unused, hkc_json *w)
{
    hak_wasm_look look = {.parts = hkc_parts_begin(0)};
    (void)unused;
    if (look.parts) live.tenants(live.user, &look);
    hkc_parts_end(look.parts);
    hkw_report_begin(w, look.parts);
    hkc_parts_close(look.parts);
    look = (hak_wasm_look){.w = w};
    live.tenants(live.user, &look);
    hkc_report_json_end(w);
    return look.error;
}

int hak_wasm_live_start(const char *place, hak_wasm_tenants_fn *tenants, void *user, char *error,
                        size_t error_size)
{
    const hkc_live_options options = {.place = place, .report = report};
    char why[HKC_LIVE_ERROR] = "this process is looked at already";
    bool ok = live.process != getpid();
    if (!place || !tenants) {
        ok = false;
        snprintf(why, sizeof why, "hak_wasm_live_start needs a place, and a function that names the tenants");
    } else if (!ok && !live.tenants)
        snprintf(why, sizeof why,
                 "this process was looked at before: hak_wasm_live_start works once in a process");
    if (ok) {
        /* In a child, what is left of its parent's. Names may be half made: its thread was at them. */
        hkc_live_end();
        live.names = (hkc_names){0};
        live.tenants = tenants;
        live.user = user;
        ok = hkc_live_begin(&options, why);
        if (ok) live.process = getpid();
        else live.tenants = NULL;
    }
    if (!ok && error) snprintf(error, error_size, "%s", why);
    return ok ? 0 : -1;
}

void hak_wasm_live_stop(void)
{
    if (!live.tenants) return;
    hkc_live_end();
    hkc_names_close(&live.names);
    live.tenants = NULL;
}
