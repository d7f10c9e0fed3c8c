#include "profile.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8192, MOST = SLOTS / 2, TEXT_MOST = 255 };

/* Functions of one tenant's guests. Number 0 stands for those that found no room. */
struct hkw_frames {
    pthread_mutex_t lock;
    uint32_t count;
    uint16_t slots[SLOTS];
    hak_wasm_frame at[MOST];
};

hkw_frames *hkw_frames_new(void)
{
    hkw_frames *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->at[0].function = "";
    f->count = 1;
    return f;
}

void hkw_frames_delete(hkw_frames *f)
{
    if (!f) return;
    for (uint32_t i = 1; i < f->count; i++) {
        free((void *)(uintptr_t)f->at[i].function);
        free((void *)(uintptr_t)f->at[i].module);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static uint32_t mix(uint32_t hash, const char *text)
{
    for (size_t i = 0; text && text[i] != '\0' && i < TEXT_MOST; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static bool is_text(const char *kept, const char *text)
{
    return kept && text ? strncmp(kept, text, TEXT_MOST) == 0 : kept == text;
}

static bool is_same(const hak_wasm_frame *a, const hak_wasm_frame *b)
{
    return a->index == b->index && is_text(a->function, b->function) && is_text(a->module, b->module);
}

static uint16_t *slot_of(hkw_frames *f, const hak_wasm_frame *frame)
{
    const uint32_t hash = mix(mix(2166136261u ^ frame->index * 2654435761u, frame->function), frame->module);
    uint16_t *slot = &f->slots[hash % SLOTS];
    while (*slot != 0 && !is_same(&f->at[*slot], frame))
        slot = slot + 1 < f->slots + SLOTS ? slot + 1 : f->slots;
    return slot;
}

static bool keep(const char **to, const char *text)
{
    *to = text ? strndup(text, TEXT_MOST) : NULL;
    return *to || !text;
}

uintptr_t hkw_frames_number(hkw_frames *f, const hak_wasm_frame *frame)
{
    pthread_mutex_lock(&f->lock);
    uint16_t *slot = slot_of(f, frame);
    if (*slot == 0 && f->count < MOST) {
        hak_wasm_frame *own = &f->at[f->count];
        own->index = frame->index;
        if (keep(&own->function, frame->function) && keep(&own->module, frame->module)) {
            *slot = (uint16_t)f->count++;
        } else {
            free((void *)(uintptr_t)own->function);
            *own = (hak_wasm_frame){NULL, NULL, 0};
        }
    }
    const uintptr_t number = HKW_FRAME_BIT | *slot;
    pthread_mutex_unlock(&f->lock);
    return number;
}

bool hkw_frames_at(hkw_frames *f, uintptr_t number, hak_wasm_frame *out)
{
    const uintptr_t i = number & ~HKW_FRAME_BIT;
    if ((number & HKW_FRAME_BIT) == 0) return false;
    pthread_mutex_lock(&f->lock);
    const bool is_one = i < f->count;
    if (is_one) *out = f->at[i];
    pthread_mutex_unlock(&f->lock);
    return is_one;
}
