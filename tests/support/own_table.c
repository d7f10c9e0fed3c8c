/* Takes the place of hak_os_init in programs that tests/core/systems.cmake does not run over other systems, because
 * all their spaces have tables of their own. */
#include <hakmem/hakmem.h>

#include <stdio.h>
#include <stdlib.h>

void __wrap_hak_os_init(hak_os *os, size_t size);

void __wrap_hak_os_init(hak_os *os, size_t size)
{
    (void)os, (void)size;
    fprintf(stderr, "the table of the system is used: this program is to leave the list own_table in "
                    "core/systems.cmake\n");
    abort();
}
