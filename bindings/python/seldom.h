/* Code and constants of the hook in the order of the link: what every process runs, hooks with native labels,
 * hooks with lines, and what runs seldom: when a process starts, for labels of places that are new, for
 * reports. The kernel maps 64 KiB around each page of a file that is touched, up to the end of the mapping:
 * each of these parts has one of its own, so that it does not become resident with the others. */
#ifndef HK_PY_SELDOM_H
#define HK_PY_SELDOM_H

/* Parts the mappings. Their pages leave this process, to be read from the file again; a debugger's
 * breakpoints in them are lost. */
void hk_py_seldom_part(void);
/* The same for the pages of what runs seldom, once it has run. */
void hk_py_seldom_leave(void);

typedef struct hk_py_seldom_fn {
    int (*call)(void);
} hk_py_seldom_fn;
/* Calls a function that is part of it, and then lets it go. For Py_AddPendingCall. */
int hk_py_seldom_call(void *fn);

/* The first file of a part, see CMakeLists.txt: no page of code is of two parts. */
#define HK_PY_BORDER(part)                                                                                   \
    const char hk_py_##part##_constants[16] = "hakmem: " #part;                                              \
    __attribute__((aligned(4096))) void hk_py_##part##_code(void)                                            \
    {                                                                                                        \
    }

/* Where they begin. */
#define HK_PY_PART(part)                                                                                     \
    extern const char hk_py_##part##_constants[16] __attribute__((visibility("hidden")));                    \
    void hk_py_##part##_code(void) __attribute__((visibility("hidden")));
HK_PY_PART(native)
HK_PY_PART(site)
HK_PY_PART(seldom)

#endif
