/* Code and constants of the hook are linked in sections: what every process runs, hooks with native labels,
 * hooks with lines, and what is cold: what runs when a process starts, for labels of places that are new, for
 * reports. The kernel maps 64 KiB around each page of a file that is touched, up to the end of the mapping:
 * each section has a mapping of its own, so that it does not become resident with the others. */
#ifndef HKP_COLD_H
#define HKP_COLD_H

/* Gives each section a mapping. Pages behind the first section leave this process, to be read from the file
 * again; a debugger's breakpoints in them are lost. */
void hkp_sections_part(void);
/* The pages of cold code and constants leave the process, once they were used. */
void hkp_cold_leave(void);

typedef struct hkp_cold_fn {
    int (*call)(void);
} hkp_cold_fn;
/* Calls a cold function, and then lets the pages go. For Py_AddPendingCall. */
int hkp_cold_call(void *fn);

/* The first file of a section, see sections.cmake: no page of code is of two sections. */
#define HKP_BOUNDARY(section)                                                                                \
    const char hkp_##section##_constants[16] = "hakmem: " #section;                                          \
    __attribute__((aligned(4096))) void hkp_##section##_code(void)                                           \
    {                                                                                                        \
    }

/* Where they begin. */
#define HKP_SECTION(section)                                                                                 \
    extern const char hkp_##section##_constants[16] __attribute__((visibility("hidden")));                   \
    void hkp_##section##_code(void) __attribute__((visibility("hidden")));
HKP_SECTION(native)
HKP_SECTION(lines)
HKP_SECTION(cold)

#endif
