/* Which state of an instance is outside of its memory, and a module that shows it. */
#ifndef HKW_MODULE_H
#define HKW_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HKW_EXPORT_PREFIX "hak:"
#define HKW_EXPORT_MEMORY HKW_EXPORT_PREFIX "memory"
/* And a decimal number from 0: */
#define HKW_EXPORT_GLOBAL HKW_EXPORT_PREFIX "global:"
#define HKW_EXPORT_TABLE HKW_EXPORT_PREFIX "table:"
#define HKW_EXPORT_FUNCTION HKW_EXPORT_PREFIX "function:"

/* A table that the module defines. */
typedef struct hkw_table {
    uint64_t least, most; /* elements: at first, and declared; UINT64_MAX = no end is declared */
    uint32_t element;     /* bytes of one, at most */
} hkw_table;

typedef struct hkw_module {
    uint8_t *bytes; /* malloc; NULL when no copy was made */
    size_t size;
    uint32_t globals; /* mutable ones, all exported by the copy */
    uint32_t
        functions; /* that elements of its tables may be, all exported by the copy; 0 unless tables change */
    uint32_t memories;    /* that it defines */
    const char *refused;  /* why memory, globals and tables are not all of the state; NULL = they are */
    const char *borrowed; /* why some of the state is what it imports; NULL = none is */
    hkw_table *tables;    /* malloc; NULL = none */
    uint32_t table_count;
    bool tables_change;                /* all tables are exported by the copy, since code may change them */
    bool changes_table, exports_table; /* its own code does; others may, if they are in a program with it */
    bool tables_grow;                  /* its code may change their sizes */
    uint64_t passive;                  /* elements of passive segments */
    uint64_t own; /* bytes of an instance's own structure, at most: globals, functions that are referred to */
    uint64_t kept;      /* bytes that wasmtime keeps in its heap of the module, beside code, roughly */
    const char *broken; /* why tables and segments cannot be counted; NULL = they can */
} hkw_module;

/* Looks through a whole binary. Counts its tables. Where an instance's state is its one memory, if it has
 * any, its mutable globals and its tables of functions, makes a copy that exports them; else says why not. A
 * binary that is not valid is refused, too. part: other modules of a program may change tables that it
 * exports. */
void hkw_module_read(const uint8_t *bytes, size_t size, bool part, hkw_module *out);

#endif
