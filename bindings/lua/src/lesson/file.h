/* Lessons in files: one for each lesson, runtime and build of hakmem, in the byte order of the machine. A
 * file is whole or not there, and one that does not fit, by a single bit, is none. */
#ifndef HKL_LESSON_FILE_H
#define HKL_LESSON_FILE_H

#include "lesson/lesson.h"

enum { HKL_LESSON_FOLDER = 3072 };

/* Build ids of the runtime's image and of the one with this code; own NULL = it has none, and no files. */
typedef struct hkl_lesson_ids {
    const uint8_t *runtime;
    size_t runtime_size;
    const uint8_t *own;
    size_t own_size;
} hkl_lesson_ids;

/* How many words; 0 = there is no such file of this user's. */
size_t hkl_lesson_read(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                       uint32_t words[HKL_LESSON_WORDS]);
/* Makes the folder if its parent is there, or can be made. */
void hkl_lesson_write(const char *folder, hkl_lesson_name name, const hkl_lesson_ids *ids,
                      const uint32_t *words, size_t count);

#endif
