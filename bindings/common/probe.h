/* A static probe for tracers (USDT): an instruction that does nothing, and a note of where it stands, by which
 * bpftrace, SystemTap, gdb and OpenTelemetry's profiler find it. The notes are those of SystemTap's sys/sdt.h,
 * version 3, written here since no package has to be there when hakmem is built.
 *
 *     HKC_PROBE_SEMAPHORE(provider, name);              once, in the file that has the probe
 *     if (HKC_PROBE_AWAITED(provider, name)) HKC_PROBE3(provider, name, a, b, c);
 *
 * The semaphore counts the tracers: the kernel, or the debugger, adds 1 to it when one attaches. Arguments are
 * unsigned, of 64 bits. */
#ifndef HKC_PROBE_H
#define HKC_PROBE_H

#if defined(__linux__) && defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#define HKC_PROBES 1

#include <stdint.h>

#define HKC_PROBE_SEMAPHORE(provider, name)                                                                  \
    extern volatile uint16_t hkc_##provider##_##name##_semaphore;                                            \
    __attribute__((visibility("hidden"), used,                                                               \
                   section(".probes"))) volatile uint16_t hkc_##provider##_##name##_semaphore

#define HKC_PROBE_AWAITED(provider, name) __builtin_expect(hkc_##provider##_##name##_semaphore != 0, 0)

/* What the note has: the length of its name, of its text, its type; the place of the probe, of a section that
 * tells how far the file was moved after it was linked, and of the semaphore; provider, name, arguments. */
#define HKC_PROBE_NOTE(provider, name, arguments)                                                            \
    "990: nop\n"                                                                                             \
    ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                            \
    ".balign 4\n"                                                                                            \
    ".4byte 992f-991f, 994f-993f, 3\n"                                                                       \
    "991: .asciz \"stapsdt\"\n"                                                                              \
    "992: .balign 4\n"                                                                                       \
    "993: .8byte 990b, _.stapsdt.base, hkc_" #provider "_" #name "_semaphore\n"                              \
    ".asciz \"" #provider "\"\n"                                                                             \
    ".asciz \"" #name "\"\n"                                                                                 \
    ".asciz \"" arguments "\"\n"                                                                             \
    "994: .balign 4\n"                                                                                       \
    ".popsection\n"                                                                                          \
    ".ifndef _.stapsdt.base\n"                                                                               \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                  \
    ".weak _.stapsdt.base\n"                                                                                 \
    ".hidden _.stapsdt.base\n"                                                                               \
    "_.stapsdt.base: .space 1\n"                                                                             \
    ".size _.stapsdt.base, 1\n"                                                                              \
    ".popsection\n"                                                                                          \
    ".endif\n"

#define HKC_PROBE1(provider, name, a)                                                                        \
    __asm__ __volatile__(HKC_PROBE_NOTE(provider, name, "8@%[first]")::[first] "r"((uint64_t)(a)))
#define HKC_PROBE3(provider, name, a, b, c)                                                                  \
    __asm__ __volatile__(                                                                                    \
        HKC_PROBE_NOTE(provider, name, "8@%[first] 8@%[second] 8@%[third]")::[first] "r"((uint64_t)(a)),     \
        [second] "r"((uint64_t)(b)), [third] "r"((uint64_t)(c)))

#endif
#endif
