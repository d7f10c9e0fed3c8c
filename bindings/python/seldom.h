/* Code and constants of the hook that run seldom: when a process starts, for labels, for reports. They are
 * linked behind the rest. The kernel maps 64 KiB around each page of a file that is touched, up to the end of
 * the mapping: theirs is apart, so that they do not become resident with the rest. */
#ifndef HK_PY_SELDOM_H
#define HK_PY_SELDOM_H

/* Its pages leave this process, to be read from the file again; a debugger's breakpoints in it are lost. */
void hk_py_seldom_leave(void);

typedef struct hk_py_seldom_fn {
    int (*call)(void);
} hk_py_seldom_fn;
/* Calls a function that is part of it, and then lets it go. For Py_AddPendingCall. */
int hk_py_seldom_call(void *fn);

/* Where it begins. */
extern const char hk_py_seldom_constants[16] __attribute__((visibility("hidden")));
void hk_py_seldom_code(void) __attribute__((visibility("hidden")));

#endif
