/* What a tenant's profile keeps beside the core's. */
#ifndef HAKMEM_WASM_PROFILE_IMPL_H
#define HAKMEM_WASM_PROFILE_IMPL_H

#include "tenant.h"

#include "callsite/names.h"
#include "common/parts.h"

#include <hakmem/wasm_profile.h>

typedef struct hkw_frames hkw_frames;

/* Linear memories have no blocks: each growth is one in a context of its own, whose pages nobody touches. */
struct hkw_profile {
    hak_wasm_tenant *tenant;
    hkw_frames *frames;
    hak_space *space;
    hak_ctx *linear;
    pthread_mutex_t lock; /* of `linear` */
    hak_site site;        /* of the call that resizes; under the tenant's lock */
};

/* A growth of a memory, the newest first. */
struct hkw_growth {
    hkw_growth *next;
    void *block;
    size_t bytes;
};

/* The memory of a slot has grown, or shrunk, by so many bytes. site: of the call into the binding. */
void hkw_profile_grown(hak_wasm_tenant *tenant, hkw_slot *slot, size_t bytes, hak_site site);
void hkw_profile_shrunk(hak_wasm_tenant *tenant, hkw_slot *slot, size_t bytes);

/* For hkw_slots_each, at the end of the host: the records of a memory that lives. */
void hkw_profile_forget(void *unused, hkw_slot *slot);

/* ---- report.c -------------------------------------------------------------------------------------- */

/* The tenant's memory, and its host's, among the parts that have begun. */
void hkw_parts_tenant(hkc_parts *parts, hak_wasm_tenant *tenant);
/* The array of contexts is open; hkc_report_json_end() ends it. */
void hkw_report_begin(hkc_json *w, const hkc_parts *parts);
/* The tenant's contexts. names: of machine code, which tenants have in common. 0 = ok; else errno. */
int hkw_report_tenant(hkc_json *w, hak_wasm_tenant *tenant, hkc_names *names);

/* ---- frames.c: functions of guests as numbers ---------------------------------------------------- */

/* Numbers have the highest bit, which no address of code has. */
#define HKW_FRAME_BIT ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1))

/* NULL = no memory. */
hkw_frames *hkw_frames_new(void);
void hkw_frames_delete(hkw_frames *frames);
/* The number of the function; its texts are copied. [any thread] */
uintptr_t hkw_frames_number(hkw_frames *frames, const hak_wasm_frame *frame);
/* What a number stands for; its texts stay. function "" = there was no room. false = it is none. [any thread]
 */
bool hkw_frames_at(hkw_frames *frames, uintptr_t number, hak_wasm_frame *out);

#endif
