/* What the programs of these examples have in common: their command line, and the report at the end. */
#ifndef VMS_COMMAND_H
#define VMS_COMMAND_H

#include <hakmem/hakmem.h>

typedef struct command {
    bool own;           /* -a own: the machine's own allocator, to compare with */
    bool labels;        /* not -a plain */
    bool print;         /* -l */
    size_t limit;       /* -m SIZE; 0 = none */
    const char *report; /* -r REPORT; NULL = none */
    const char *file;
    char *text; /* what is in it, with a 0 behind it */
    size_t length;
} command;

/* false = the user was told what is wrong. */
bool command_read(command *c, int argc, char **argv);
/* With -l: what lives by label, where the memory is, and what the process had at most, to stderr. With -r: a
 * file for the command hakmem. heap NULL = the machine's own allocator. */
void command_report(const command *c, hak_ctx *heap);

#endif
