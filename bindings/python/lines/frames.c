#define _GNU_SOURCE
#include "lines/frames.h"

#include "base/cpython.h"
#include "heap/heap.h"

#include <dlfcn.h>
#include <link.h>

enum { OB_TYPE = 8, OB_SIZE = 16, TYPE_DEALLOC = 48, STR_LENGTH = 16, STR_STATE = 32, BYTES_DATA = 32 };
enum {
    CODE_3_10_BYTES = 48,
    CODE_FIRST_TRACEABLE = -16 /* from the instructions back */
};                             /* the instructions, a bytes object */
enum { STR_COMPACT = 1 << 5, STR_ASCII = 1 << 6 };

static const void *const nothing;
hkp_frames hkp_frames_ready = {.thread_address = &nothing};

static const hkp_layout *layout;
static void *(*thread_state)(void), *(*own_state)(void);
static const void *code_type, *unicode_type, *bytes_type;
static const char *state = "waiting";
static void (*code_dies)(const void *code);
static void (*dealloc_code)(void *code);

static intptr_t offset_of(const void *thread_data)
{
    uintptr_t self = 0;
#ifdef HKP_THREAD_REGISTER
    __asm__("movq %%fs:0, %0" : "=r"(self));
#endif
    return (intptr_t)((uintptr_t)thread_data - self);
}

const char *hkp_frames_start(void (*dies)(const void *code))
{
    code_dies = dies;
    /* which is NULL whenever a block is made */
    hkp_frames_ready.thread_offset = offset_of(&hkp_foreign);
    const hkp_python *python = hkp_python_find();
    for (size_t i = 0; i < HKP_LAYOUTS && python; i++)
        if (python->version >= hkp_layouts[i].version && python->version <= hkp_layouts[i].last)
            layout = &hkp_layouts[i];
    if (!layout || python->free_threading)
        return "sites in Python code are there for CPython 3.10 to 3.15 with the GIL";
    void *f = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!f) f = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    memcpy(&thread_state, &f, sizeof f);
    void *own = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    memcpy(&own_state, &own, sizeof own);
    hkp_frames_ready.own_state = own_state;
    code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    unicode_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    bytes_type = dlsym(RTLD_DEFAULT, "PyBytes_Type");
    return f && own && code_type && unicode_type && bytes_type
               ? NULL
               : "this CPython does not export what sites need";
}

/* The state of a thread that holds the GIL. */
static void *held_state(void)
{
    void *held = thread_state();
    return held && held == own_state() ? held : NULL;
}

void hkp_frames_end(void)
{
    if (own_state) hkp_frames_ready.own_state = held_state;
}

/* Before 3.12 the state that runs may be another thread's. */
const void *hkp_frames_thread(bool *gil)
{
    const hkp_python *python = hkp_python_find();
    *gil = false;
    if (!layout || !own_state || !python->is_initialized()) return NULL;
    const void *running = thread_state();
    if (running && python->version >= 0x030c) {
        *gil = true;
        return running;
    }
    const void *own = hkp_frames_ready.own_state();
    *gil = own && own == running;
    return own;
}

int hkp_frames_layout(void)
{
    return (int)(layout - hkp_layouts);
}

static bool is(const void *object, const void *type)
{
    return object && hkp_load(object, OB_TYPE) == type;
}

bool hkp_place_of(const void *frame, hkp_place *place)
{
    place->code = hkp_load_reference(frame, layout->frame_code);
    uint64_t instruction = hkp_load64(frame, layout->frame_instruction);
    place->offset = layout->code_body != 0
                        ? (intptr_t)((uintptr_t)instruction - (uintptr_t)place->code - layout->code_body)
                        : 2 * (intptr_t)(int32_t)instruction;
    return is(place->code, code_type);
}

const void *hkp_frame_caller(const void *frame)
{
    return hkp_load(frame, layout->frame_previous);
}

/* In 3.10 the caller's frame is the running one then. */
bool hkp_place_before(const hkp_place *place)
{
    if (layout->code_body == 0) return false;
    int32_t first;
    memcpy(&first, place->code + layout->code_body + CODE_FIRST_TRACEABLE, sizeof first);
    return place->offset < 2 * (intptr_t)first;
}

size_t hkp_code_units(const void *code)
{
    if (layout->code_body != 0) return (size_t)hkp_load64(code, OB_SIZE);
    return (size_t)hkp_load64(hkp_load(code, CODE_3_10_BYTES), OB_SIZE) / 2;
}

static void watched_dealloc(void *code)
{
    code_dies(code);
    dealloc_code(code);
}

/* The address of a code object may be that of another one next. */
static void watch_code(void)
{
    void (**slot)(void *) = (void (**)(void *))((uintptr_t)code_type + TYPE_DEALLOC);
    void (*dealloc)(void *) = *slot;
    if (dealloc == watched_dealloc) return;
    dealloc_code = dealloc;
    *slot = watched_dealloc;
}

/* Whether the first frame seen looks as the layout says. */
static bool plausible(const hkp_place *place)
{
    const char *code = place->code;
    return is(hkp_load(code, layout->code_file), unicode_type) &&
           is(hkp_load(code, layout->code_name), unicode_type) &&
           is(hkp_load(code, layout->code_lines), bytes_type);
}

#ifdef HKP_THREAD_REGISTER

typedef struct search {
    const void *value;
    uintptr_t code,
        found; /* an address in CPython's image; the word of its thread-local data that is the state */
} search;

/* Whether it is what the function tells. From 3.15 on another word has the state of this thread, whether it
 * runs or not. That the state is not there for a moment is what it is without the GIL, for a signal's handler
 * too. */
static bool is_running(uintptr_t word)
{
    void *volatile *there = (void *volatile *)word;
    void *before = *there;
    *there = NULL;
    const bool is = thread_state() == NULL;
    *there = before;
    return is;
}

static int search_thread_data(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    search *s = user;
    bool here = false;
    size_t words = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD) here |= s->code - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz;
        else if (ph->p_type == PT_TLS) words = ph->p_memsz / sizeof(void *);
    }
    if (!here) return 0;
    const char *data = info->dlpi_tls_data;
    unsigned hits = 0;
    for (size_t i = 0; data && i < words; i++) {
        if (hkp_load(data, i * sizeof(void *)) != s->value) continue;
        const uintptr_t word = (uintptr_t)data + i * sizeof(void *);
        if (hits++ == 0 || is_running(word)) s->found = word;
    }
    if (hits > 1 && !is_running(s->found)) s->found = 0;
    return 1;
}

/* CPython from 3.12 on keeps the thread state in thread-local memory. Where the loader has put that right
 * below the thread's own data, it is at the same distance in all threads. 0 = it has not. */
static intptr_t thread_offset(const void *thread)
{
    enum { STATIC_MAX = 16384 };
    search s = {.value = thread};
    memcpy(&s.code, &thread_state, sizeof s.code);
    dl_iterate_phdr(search_thread_data, &s);
    intptr_t offset = s.found != 0 ? offset_of((const void *)s.found) : 0;
    return offset < 0 && offset >= -STATIC_MAX ? offset : 0;
}

/* Before 3.12 it is in the runtime, and the function that tells it is `mov address, %rax; ret`, or has
 * `mov offset(%rax), %rax` between them. */
static const void *const volatile *thread_address(const void *thread)
{
    static const uint8_t load[] = {0x48, 0x8b, 0x05}, load_more[] = {0x48, 0x8b, 0x80}, ret = 0xc3;
    const uint8_t *code;
    int32_t distance;
    memcpy(&code, &thread_state, sizeof code);
    if (memcmp(code, load, sizeof load) != 0) return NULL;
    memcpy(&distance, code + 3, sizeof distance);
    code += 7;
    const char *at = (const char *)code + distance;
    if (memcmp(code, load_more, sizeof load_more) == 0) {
        memcpy(&distance, code + 3, sizeof distance);
        at = (const char *)hkp_load(at, 0) + distance;
        code += 7;
    }
    return *code == ret && hkp_load(at, 0) == thread ? (const void *const volatile *)at : NULL;
}

#else

static intptr_t thread_offset(const void *thread)
{
    (void)thread;
    return 0;
}

static const void *const volatile *thread_address(const void *thread)
{
    (void)thread;
    return NULL;
}

#endif

bool hkp_frames_prepare(void)
{
    const hkp_python *python = hkp_python_find();
    if (!layout) return true;
    const void *thread = python->is_initialized() ? thread_state() : NULL;
    const void *frame = thread ? hkp_frame_of(layout, thread) : NULL;
    while (frame && hkp_frame_is_call(layout, frame))
        frame = hkp_frame_caller(frame);
    if (!frame) return false;
    hkp_place place;
    if (!hkp_place_of(frame, &place) || !plausible(&place)) {
        state = "frames of this CPython are not as expected";
        layout = NULL;
        return true;
    }
    watch_code();
    state = "ready";
    hkp_frames_ready.thread_state = thread_state;
    bool old = python->version < 0x030c;
    const void *const volatile *address = old ? thread_address(thread) : NULL;
    intptr_t offset = old ? 0 : thread_offset(thread);
    if (address) hkp_frames_ready.thread_address = address;
    if (offset != 0) hkp_frames_ready.thread_offset = offset;
    __atomic_store_n(&hkp_frames_ready.layout, layout, __ATOMIC_RELEASE);
    return address || offset != 0;
}

const char *hkp_frames_state(void)
{
    return state;
}

/* A byte of a file name that is no UTF-8 is DC80 to DCFF in a str; any other surrogate is no character. */
static size_t put_utf8(uint32_t c, char *out)
{
    bool byte = c >= 0xdc80 && c <= 0xdcff;
    if (c >= 0xd800 && c <= 0xdfff && !byte) c = 0xfffd;
    if (c < 0x80 || byte) {
        out[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    for (size_t i = more; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(lead[more] | c);
    return more + 1;
}

size_t hkp_text_of(const void *string, char *out, size_t size)
{
    uint32_t form, c = 0;
    memcpy(&form, (const char *)string + STR_STATE, sizeof form);
    size_t length = (size_t)hkp_load64(string, STR_LENGTH), width = form >> 2 & 7, at = 0;
    const char *data = (const char *)string + (form & STR_ASCII ? layout->text_ascii : layout->text_other);
    if (!is(string, unicode_type) || !(form & STR_COMPACT)) length = 0;
    if (form & STR_ASCII) {
        at = length < size - 1 ? length : size - 1;
        memcpy(out, data, at);
    } else {
        for (size_t i = 0; i < length && at + 5 <= size; i++) {
            memcpy(&c, data + i * width, width); /* little-endian, as all of this */
            at += put_utf8(c, out + at);
        }
    }
    out[at] = 0;
    return at + 1;
}

void hkp_place_name(const hkp_place *place, char *text, size_t size)
{
    size_t file = hkp_text_of(hkp_load(place->code, layout->code_file), text, size / 4 * 3);
    hkp_text_of(hkp_load(place->code, layout->code_name), text + file, size - file);
}

int hkp_place_line(const hkp_place *place, hkp_line_walk *walk)
{
    int first;
    memcpy(&first, place->code + layout->code_first_line, sizeof first);
    const char *table = hkp_load(place->code, layout->code_lines);
    size_t size = (size_t)hkp_load64(table, OB_SIZE);
    const uint8_t *lines = (const uint8_t *)table + BYTES_DATA;
    int line = layout->code_body != 0 ? hkp_line_3_11(lines, size, first, place->offset, walk)
                                      : hkp_line_3_10(lines, size, first, place->offset, walk);
    return line != 0 ? line : first;
}
