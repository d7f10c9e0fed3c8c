/* Lessons of the runtimes of distributions, made by scripts/lua-lessons. */
#ifndef HKL_LESSON_KNOWN_H
#define HKL_LESSON_KNOWN_H

#include "lesson/lesson.h"

typedef struct hkl_lesson_known {
    const char *build_id; /* of the runtime's image, in hexadecimal */
    hkl_lesson_name name;
    uint16_t count;
    const uint32_t *words;
} hkl_lesson_known;

extern const hkl_lesson_known hkl_lessons_known[]; /* of this version of Lua; the last one has no build_id */

#endif
