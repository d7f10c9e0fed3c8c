#define _GNU_SOURCE
#include "native/learn_calls.h"

#include "base/map.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { CALLS_MAX = 1 << 18, PASSES_MAX = 16, WINDOW = 1 << 16 };

typedef struct call {
    uint32_t from, to; /* numbers of functions */
} call;

typedef struct survey {
    const hkp_functions *functions;
    unsigned char *subsystems;
    call *calls; /* to unknown functions; CALLS_MAX, and as many again to sort them */
    size_t call_count;
    uint32_t *first; /* of the calls to each function once they are sorted; count + 1 */
} survey;

static void add_call(survey *s, uintptr_t at, uintptr_t target, size_t *caller)
{
    const hkp_functions *f = s->functions;
    size_t to = hkp_functions_number(f, target);
    if (to == f->count || s->subsystems[to] != HKP_UNKNOWN || s->call_count == CALLS_MAX) return;
    while (*caller + 1 < f->count && f->starts[*caller + 1] <= at)
        ++*caller;
    if (*caller != to) s->calls[s->call_count++] = (call){(uint32_t)*caller, (uint32_t)to};
}

/* Where calls begin: of 16 bytes those with a bit. A window of code leaves BEHIND bytes to the next one. */
#ifdef __aarch64__
enum { EACH = 0x1111, INSTRUCTION_MAX = 4, BEHIND = 0 };
#else
enum { EACH = 0xffff, INSTRUCTION_MAX = 6, BEHIND = INSTRUCTION_MAX - 1 };
#endif

/* Stores where a call, a jump or a conditional jump (to a part of the function that seldom runs) leads; false =
 * there is none. Bytes in the middle of another instruction hardly ever point to a function's start. */
static inline bool target_at(const uint8_t *p, uintptr_t at, uintptr_t *target)
{
#ifdef __aarch64__
    uint32_t w;
    memcpy(&w, p, sizeof w);
    const bool far = (w & 0x7c000000) == 0x14000000; /* b, bl: 26 bits */
    const bool near =
        (w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000; /* b.cond, cbz: 19 bits */
    if (!far && !near) return false;
    const int64_t words =
        far ? (int64_t)((uint64_t)w << 38) >> 38 : (int64_t)((uint64_t)(w >> 5) << 45) >> 45;
    *target = at + (uintptr_t)words * sizeof w;
#else
    size_t skip = (p[0] & 0xfe) == 0xe8 ? 1 : 0;
    if (p[0] == 0x0f && (p[1] & 0xf0) == 0x80) skip = 2;
    if (skip == 0) return false;
    int32_t distance;
    memcpy(&distance, p + skip, sizeof distance);
    *target = at + skip + sizeof distance + (uintptr_t)(intptr_t)distance;
#endif
    return true;
}

/* A bit for each of 16 bytes with which target_at may be content. */
static inline unsigned candidates(const uint8_t *p)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i even = _mm_and_si128(bytes, _mm_set1_epi8((char)0xfe));
    __m128i found = _mm_or_si128(_mm_cmpeq_epi8(even, _mm_set1_epi8((char)0xe8)),
                                 _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x0f)));
    return (unsigned)_mm_movemask_epi8(found);
#else
    (void)p;
    return EACH;
#endif
}

/* Calls in n bytes of code that run at `address`. */
static void scan(survey *s, const uint8_t *code, size_t n, uintptr_t address, size_t *caller)
{
    for (size_t block = 0; block + INSTRUCTION_MAX <= n; block += 16) {
        unsigned left = block + 16 <= n ? candidates(code + block) : EACH;
        for (; left != 0; left &= left - 1) {
            size_t i = block + (size_t)__builtin_ctz(left);
            uintptr_t target;
            if (i + INSTRUCTION_MAX > n) break;
            if (target_at(code + i, address + i, &target)) add_call(s, address + i, target, caller);
        }
    }
}

static bool scan_segment(survey *s, int fd, const ElfW(Phdr) * ph, uintptr_t bias)
{
    uint8_t window[WINDOW];
    size_t caller = 0;
    for (size_t done = 0; done < ph->p_filesz;) {
        size_t rest = ph->p_filesz - done, n = rest < WINDOW ? rest : WINDOW;
        if (pread(fd, window, n, (off_t)(ph->p_offset + done)) != (ssize_t)n) return false;
        scan(s, window, n, bias + ph->p_vaddr + done, &caller);
        done += n < rest ? n - BEHIND : n;
    }
    return true;
}

static bool find_calls(survey *s, const hkc_image *core)
{
    int fd = open(core->path[0] != 0 ? core->path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ElfW(Ehdr) head;
    bool ok = fd >= 0 && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
    for (unsigned i = 0; ok && i < head.e_phnum; i++) {
        ElfW(Phdr) ph;
        ok = pread(fd, &ph, sizeof ph, (off_t)(head.e_phoff + i * sizeof ph)) == (ssize_t)sizeof ph;
        if (ok && ph.p_type == PT_LOAD && (ph.p_flags & PF_X)) ok = scan_segment(s, fd, &ph, core->bias);
    }
    if (fd >= 0) close(fd);
    return ok;
}

/* By function called. */
static void sort_calls(survey *s)
{
    call *sorted = s->calls + CALLS_MAX;
    for (size_t i = 0; i < s->call_count; i++)
        s->first[s->calls[i].to + 1]++;
    size_t count = s->functions->count;
    for (size_t i = 0; i < count; i++)
        s->first[i + 1] += s->first[i];
    for (size_t i = s->call_count; i-- > 0;)
        sorted[--s->first[s->calls[i].to + 1]] = s->calls[i];
    /* now first[i + 1] is where those of i begin */
    for (size_t i = 0; i < count; i++)
        s->first[i] = s->first[i + 1];
    s->first[count] = (uint32_t)s->call_count;
}

/* The part to which most callers belong, if that is 2 in 5 of those that belong to one: link-time
 * optimisation puts the outer function of a part (PyDict_SetItem) into callers of all parts. More than those
 * of the core: what they call is often a piece of their own. What a helper calls is for all parts, as the
 * helper is. */
static unsigned char decide(const survey *s, size_t function)
{
    const call *sorted = s->calls + CALLS_MAX;
    uint32_t votes[HKP_SUBSYSTEM_COUNT] = {0}, sum = 0;
    for (uint32_t i = s->first[function]; i < s->first[function + 1]; i++) {
        unsigned char from = s->subsystems[sorted[i].from];
        if (from == HKP_HELPER) return HKP_UNKNOWN;
        bool again = i > s->first[function] && sorted[i - 1].from == sorted[i].from;
        if (from >= HKP_SUBSYSTEM_COUNT || again) continue;
        votes[from]++;
        sum += from != HKP_CORE;
    }
    unsigned best = HKP_CORE + 1;
    for (unsigned i = best; i < HKP_SUBSYSTEM_COUNT; i++)
        if (votes[i] > votes[best]) best = i;
    return votes[best] > votes[HKP_CORE] && votes[best] * 5 >= sum * 2 ? (unsigned char)best : HKP_UNKNOWN;
}

/* Each pass goes about one call further down. */
static bool pass(survey *s)
{
    bool changed = false;
    for (size_t i = 0; i < s->functions->count; i++) {
        if (s->subsystems[i] != HKP_UNKNOWN || s->first[i] == s->first[i + 1]) continue;
        s->subsystems[i] = decide(s, i);
        changed |= s->subsystems[i] != HKP_UNKNOWN;
    }
    return changed;
}

bool hkp_learn_calls(const hkc_image *core, const hkp_functions *functions, unsigned char *subsystems)
{
    size_t bytes = 2 * CALLS_MAX * sizeof(call) + (functions->count + 1) * sizeof(uint32_t);
    survey s = {functions, subsystems, functions->count > 0 ? hkp_pages(bytes) : NULL, 0, NULL};
    if (!s.calls) return false;
    s.first = (uint32_t *)(s.calls + 2 * CALLS_MAX);
    bool ok = find_calls(&s, core);
    if (ok) sort_calls(&s);
    for (int i = 0; ok && i < PASSES_MAX && pass(&s); i++)
        continue;
    munmap(s.calls, bytes);
    return ok;
}
