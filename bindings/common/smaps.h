/* What the system tells of a process and its memory: totals, and the mappings of /proc/PID/smaps in a table.
 * Takes no lock and nothing from malloc: the table is in pages of its own. Everything here is safe in signal
 * handlers. elsewhere/smaps.c is for macOS and Windows, which have the totals alone, and of the calling process
 * alone. */
#ifndef HKC_SMAPS_H
#define HKC_SMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is known of a mapping by itself, and by those beside it. */
typedef enum hkc_mapping_kind {
    HKC_MAPPING_ANONYMOUS, /* nobody named it */
    HKC_MAPPING_NAMED,     /* [anon:NAME], by who mapped it */
    HKC_MAPPING_MALLOC,    /* [heap], and the arenas of glibc */
    HKC_MAPPING_STACK,     /* of a thread */
    HKC_MAPPING_MAIN_STACK,
    HKC_MAPPING_CODE,   /* without a file, and executable */
    HKC_MAPPING_FILE,   /* of a file, and the zeroed data of a library behind its file */
    HKC_MAPPING_SHARED, /* memory shared with other processes */
    HKC_MAPPING_SYSTEM  /* [vdso] and its kind */
} hkc_mapping_kind;

typedef struct hkc_mapping {
    uintptr_t start, end;
    size_t resident, own; /* bytes; own: those that are no longer those of the file, or never were */
    uint32_t name;        /* place among the names; 0 = none */
    uint8_t kind;
    bool readable, writable, executable, no_huge;
} hkc_mapping;

enum { HKC_MAPPING_NAME = 56 };

typedef struct hkc_smaps {
    hkc_mapping *at; /* by address */
    size_t count;
    char (*names)[HKC_MAPPING_NAME]; /* of files without their folders; that at 0 is "" */
    size_t name_count;
    size_t *sums;  /* for the reader: two numbers for each name */
    size_t beyond; /* resident bytes of mappings for which the table has no room */
} hkc_smaps;

/* false = the system does not tell, or there is no memory: there is nothing to close. Cost: what the kernel
 * takes to look at all pages of the process, about 1 ms for 1 GB, and some microseconds for each mapping. */
bool hkc_smaps_read(hkc_smaps *maps, pid_t pid);
/* The same of a text that was written before. */
bool hkc_smaps_read_fd(hkc_smaps *maps, int fd);
void hkc_smaps_close(hkc_smaps *maps);

/* ---- Totals; pid 0 = this process. What the system does not tell is 0. -------------------------------- */

/* Returns the resident bytes as the kernel counts them, which on some kernels lags behind by some pages a
 * thread. Keeps errno. */
size_t hkc_resident_of(pid_t pid);

/* Returns the resident bytes of the whole pages from start to end. pagemap: the open file of that name of the
 * process (hkc_proc_open). A page that the kernel does not tell of counts as not resident. */
size_t hkc_resident_within(int pagemap, uintptr_t start, uintptr_t end);

typedef struct hkc_totals {
    size_t resident, peak, anonymous; /* bytes; anonymous: those of `resident` that no file has */
} hkc_totals;
void hkc_totals_read(hkc_totals *out, pid_t pid);

/* Lines of a file in /proc/PID, without stdio, of which a copy of the process may find the locks held. */
typedef struct hkc_lines {
    int fd;
    size_t at, end;
    char text[4096];
} hkc_lines;

/* Opens the file to read. Returns -1 where there is none. */
int hkc_proc_open(pid_t pid, const char *name);
/* Returns the next line without its end; NULL = there is none. Lines that do not fit the buffer are
 * left out. */
char *hkc_next_line(hkc_lines *lines);
/* Reads a line as "Rss:       12 kB". */
bool hkc_kilobytes(const char *line, const char *name, size_t *bytes);

/* Copies the arguments of the command line, a 0 behind each, up to size - 1 bytes. Returns how many bytes. */
size_t hkc_command_of(pid_t pid, char *text, size_t size);
/* Returns the seconds of CPU time that this process has taken. */
double hkc_cpu_seconds(void);
pid_t hkc_parent(void);

#endif
