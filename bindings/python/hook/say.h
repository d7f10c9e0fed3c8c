/* What the hook says goes to the file that was standard error when it was loaded: a program may close the
 * number and open a file of its own, which gets it. */
#ifndef HKP_SAY_H
#define HKP_SAY_H

#include "base/core.h"

/* At load: notes what standard error is. */
void hkp_say_begin(void);
/* Keeps a duplicate of it for the end, whatever the program makes of its own. false = there is none. */
bool hkp_say_keep(void);
/* In a forked child: without that duplicate. */
void hkp_say_in_child(void);
/* To write to; -1 = there was none, or nobody has it open any more. */
int hkp_say_descriptor(void);
/* A line, without stdio: others may be in it for ever. */
__attribute__((format(printf, 1, 2))) void hkp_say(const char *format, ...);

#endif
