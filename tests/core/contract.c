/* Tries the table of the operating system, and that of hak_os_counted, against what hakmem.h promises of
 * them. For another table: put it in the place of hak_os_default. Prints a line for each point; the exit
 * status is the number of points that do not hold. */
#include "contract.h"

#include <stdio.h>

static void say(void *user, const char *point, const char *wrong, bool left_out)
{
    if (wrong) printf("%s: %s: does not hold: %s\n", (const char *)user, point, wrong);
    else printf("%s: %s: %s\n", (const char *)user, point, left_out ? "left out" : "holds");
}

int main(void)
{
    hak_os os;
    hak_os_default(&os);
    unsigned failed = contract_try(&os, 0, say, "system");
    if (hak_os_counted(&os)) failed += contract_try(&os, 0, say, "counted");
    return (int)failed;
}
