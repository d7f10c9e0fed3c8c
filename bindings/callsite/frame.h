/* The name of an address of machine code as a frame of a report. */
#ifndef HKC_FRAME_H
#define HKC_FRAME_H

#include "common/profile_json.h"
#include "names.h"

/* What is known of it, in *out, which is zero before. */
static inline void hkc_frame_of(const hkc_names *names, uintptr_t pc, hkc_frame *out)
{
    const hkc_name *name = hkc_names_find(names, pc);
    out->native = true;
    if (!name) return;
    out->function = name->function;
    out->file = name->file;
    out->module = name->module;
    out->path = name->path;
    out->build_id = name->build_id;
    out->address = name->address;
}

#endif
