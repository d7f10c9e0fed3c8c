#define _GNU_SOURCE
#include "lesson/lesson.h"

#include "image.h"
#include "lesson/file.h"
#include "lesson/known.h"
#include "newstate.h"

#include "common/cache.h"

#include <string.h>

static char folder[HKL_LESSON_FOLDER];
static bool folder_set;

bool hkl_lesson_folder(const char *name)
{
    folder_set = true;
    folder[0] = '\0';
    if (!name) return true;
    if (strlen(name) >= sizeof folder) return false;
    strcpy(folder, name);
    return true;
}

void hkl_lesson_user_folder(void)
{
    if (!folder_set && !hkc_cache_folder(folder, sizeof folder)) folder[0] = '\0';
    folder_set = true;
}

/* The image of the runtime, and that of this code, which a file has to be of. false = one has no build id. */
static bool identify(hkl_lesson *lesson, hkl_lesson_ids *ids)
{
    hkc_image runtime, own;
    if (!hkc_image_at(hkl_newstate_caller(), &runtime) || !runtime.build_id) return false;
    *ids = (hkl_lesson_ids){runtime.build_id, runtime.build_id_size, NULL, 0};
    if (hkc_image_at((uintptr_t)&identify, &own) && own.build_id) {
        ids->own = own.build_id;
        ids->own_size = own.build_id_size;
    }
    lesson->low = runtime.low;
    lesson->end = runtime.high - runtime.low <= UINT32_MAX ? runtime.high : runtime.low;
    return true;
}

static bool is_id(const char *hex, const hkl_lesson_ids *ids)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < ids->runtime_size; i++, hex += 2)
        if (hex[0] != digits[ids->runtime[i] >> 4] || hex[1] != digits[ids->runtime[i] & 15]) return false;
    return *hex == '\0';
}

static const hkl_lesson_known *find_known(hkl_lesson_name name, const hkl_lesson_ids *ids)
{
    for (const hkl_lesson_known *known = hkl_lessons_known; known->build_id; known++)
        if (known->name == name && is_id(known->build_id, ids)) return known;
    return NULL;
}

bool hkl_lesson_take(hkl_lesson_name name, hkl_lesson_part *part)
{
    uint32_t room[HKL_LESSON_WORDS];
    hkl_lesson_ids ids;
    hkl_lesson lesson = {.gives = false};
    if (!identify(&lesson, &ids)) return false;
    const hkl_lesson_known *known = find_known(name, &ids);
    if (known) {
        lesson.words = (uint32_t *)(uintptr_t)known->words; /* which are read alone */
        lesson.count = known->count;
    } else {
        lesson.words = room;
        lesson.count = folder[0] ? hkl_lesson_read(folder, name, &ids, room) : 0;
    }
    if (lesson.count == 0) return false;
    part(&lesson);
    return !lesson.broken && lesson.at == lesson.count;
}

void hkl_lesson_keep(hkl_lesson_name name, hkl_lesson_part *part)
{
    uint32_t room[HKL_LESSON_WORDS];
    hkl_lesson_ids ids;
    hkl_lesson lesson = {.gives = true, .words = room};
    if (!folder[0] || !identify(&lesson, &ids) || !ids.own) return;
    part(&lesson);
    if (!lesson.broken) hkl_lesson_write(folder, name, &ids, room, lesson.at);
}
