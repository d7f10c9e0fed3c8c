#include "profile/json.h"

#include "base/core.h"
#include "common/mapped.h"
#include "frame.h"
#include "heap/heap.h"
#include "lines/site.h"
#include "profile/asker.h"
#include "profile/import.h"
#include "profile/stack.h"
#include "profile/task.h"

#include <errno.h>

static bool is_code(uintptr_t frame)
{
    return !HKP_SITE_IS_FRAME(frame) && !hkp_asker_is(frame) && !hkp_task_is(frame) &&
           frame != HKP_STACK_MORE;
}

static bool note_code(void *user, const hak_profile_stack *stack)
{
    for (unsigned i = 0; i < stack->depth; i++)
        if (is_code(stack->frames[i]) && !hkc_names_add(user, stack->frames[i])) return false;
    return true;
}

static void name_frame(void *user, uintptr_t frame, hkc_frame *out)
{
    hkp_site_info info;
    if (frame == HKP_STACK_MORE) {
        *out = (hkc_frame){.function = "(more)"};
    } else if (hkp_task_is(frame)) {
        *out = (hkc_frame){.function = hkp_task_name(frame)};
    } else if (is_code(frame)) {
        hkc_frame_of(user, frame, out);
    } else if (hkp_site_at(HKP_SITE_OF_FRAME(frame), &info)) {
        *out =
            (hkc_frame){.function = info.function, .file = *info.file ? info.file : NULL, .line = info.line};
    }
}

/* The last frame is who asked. */
static const char *name_asker(void *unused, hak_profile_stack *stack, const char **label)
{
    (void)unused;
    if (stack->depth == 0 || !hkp_asker_is(stack->frames[stack->depth - 1])) return NULL;
    const uintptr_t asker = stack->frames[--stack->depth];
    if (stack->depth == 0) stack->site = 0;
    if (stack->label == 0) *label = hkp_asker_domain(asker);
    return hkp_asker_thread(asker);
}

static void lines(void *unused, hkc_json *w, hkc_frames *frames)
{
    const hkp_provider *provider = hkp_provider_current();
    (void)unused;
    if (provider->lines) provider->lines(w, frames, "lines");
    hkp_imports_json(w);
}

int hkp_profile_diff_json(hkc_json *w, unsigned from, unsigned to)
{
    hkc_names names = {0};
    const hkc_profile_writer by = {.name = name_frame, .stack = name_asker, .user = &names};
    if (!hkp_ctx()) return EINVAL;
    hak_profile_diff(hkp_ctx(), from, to, note_code, &names);
    hkc_names_resolve(&names);
    hkc_json_object(w, NULL);
    const int error = hkc_profile_diff_json(w, hkp_ctx(), from, to, &by);
    hkc_json_end(w);
    hkc_names_close(&names);
    return error;
}

void hkp_profile_json(hkc_json *w)
{
    hkc_names names = {0};
    const hkc_profile_writer by = {.name = name_frame, .stack = name_asker, .more = lines, .user = &names};
    const hkp_provider *provider = hkp_provider_current();
    hak_profile_info info = {.size = sizeof info};
    hkc_frames frames;
    if (hkp_ctx() && hak_profile_stats(hkp_ctx(), &info) == 0) {
        hak_profile_visit(hkp_ctx(), note_code, &names);
        hkc_names_resolve(&names);
        hkc_profile_json_by(w, hkp_ctx(), &by);
        hkc_names_close(&names);
    } else if (provider->lines) {
        hkc_frames_open(&frames);
        provider->lines(w, &frames, "stacks");
        hkc_profile_frames_json(w, &frames, name_frame, &names);
        hkc_frames_close(&frames);
    }
}

void hkp_mapped_json(hkc_json *w)
{
    hkc_names names = {0};
    const hkc_profile_writer by = {.name = name_frame, .stack = name_asker, .user = &names};
    hak_ctx *ctx = hkc_mapped_context();
    if (!ctx) return;
    hak_profile_visit(ctx, note_code, &names);
    hkc_names_resolve(&names);
    hkc_mapped_json(w, &by);
    hkc_names_close(&names);
}
