/* What was learnt of a runtime, kept for later processes: by the build id of the image (program or library)
 * that it is in, since it is addresses of code and places in structures. For the runtimes of some
 * distributions it is in this library (lesson/known.c); for others in files, in a folder that the host or the
 * user has. Only lessons that were learnt to their end are kept, and what does not fit in any way is learnt
 * anew.
 *
 * A lesson is words of 32 bits. A part of the binding gives and takes its words by one function, which runs
 * the same way in both directions. */
#ifndef HKL_LESSON_H
#define HKL_LESSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HKL_LESSON_WORDS = 2048 };

typedef struct hkl_lesson {
    bool gives;         /* words are written to `words`, else read from there */
    bool broken;        /* does not fit: too many words, or too few */
    uint32_t *words;    /* room for HKL_LESSON_WORDS where it gives */
    size_t count, at;   /* how many there are, and how many were taken */
    uintptr_t low, end; /* of the runtime's image */
} hkl_lesson;

typedef enum hkl_lesson_name {
    HKL_LESSON_LABELS,
    HKL_LESSON_THREADS,
    HKL_LESSON_TRACES,
    HKL_LESSON_CLOSE,
    HKL_LESSON_LEAVE,
    HKL_LESSON_NAMES
} hkl_lesson_name;

/* A part's function. */
typedef void hkl_lesson_part(hkl_lesson *lesson);

/* Whether the part has its lesson of this runtime from before. false = it is to be learnt: the part has what
 * `part` may have read until it did not fit, which it clears by itself. [as the part] */
bool hkl_lesson_take(hkl_lesson_name name, hkl_lesson_part *part);
/* Keeps what the part has learnt. Says nothing where it cannot. */
void hkl_lesson_keep(hkl_lesson_name name, hkl_lesson_part *part);

/* The folder for files; NULL = none, as at first. false = too long. Not while something is learnt. */
bool hkl_lesson_folder(const char *folder);
/* The user's, unless a folder was set: hkc_cache_folder(). */
void hkl_lesson_user_folder(void);

/* ---- For parts: one word, there or back ---------------------------------------------------------------- */

static inline uint32_t hkl_lesson_word(hkl_lesson *lesson, uint32_t word)
{
    if (lesson->at >= (lesson->gives ? (size_t)HKL_LESSON_WORDS : lesson->count)) {
        lesson->broken = true;
        return 0;
    }
    if (lesson->gives) lesson->words[lesson->at] = word;
    return lesson->words[lesson->at++];
}

/* A number of things of which there are at most `most`; 0 when there are more. */
static inline size_t hkl_lesson_count(hkl_lesson *lesson, size_t count, size_t most)
{
    const size_t n = hkl_lesson_word(lesson, (uint32_t)count);
    if (n <= most) return n;
    lesson->broken = true;
    return 0;
}

static inline uint64_t hkl_lesson_long(hkl_lesson *lesson, uint64_t number)
{
    const uint64_t low = hkl_lesson_word(lesson, (uint32_t)number);
    return low | (uint64_t)hkl_lesson_word(lesson, (uint32_t)(number >> 32)) << 32;
}

/* Whether it is in the runtime's image: others are not kept. */
static inline bool hkl_lesson_has(const hkl_lesson *lesson, uintptr_t address)
{
    return address >= lesson->low && address < lesson->end;
}

/* An address of the image, or 0. */
static inline uintptr_t hkl_lesson_address(hkl_lesson *lesson, uintptr_t address)
{
    const uint32_t word = hkl_lesson_word(lesson, address != 0 ? (uint32_t)(address - lesson->low) : 0);
    if (word < lesson->end - lesson->low) return word != 0 ? lesson->low + word : 0;
    lesson->broken = true;
    return 0;
}

#endif
