/* A module of heap/ that includes and calls a higher one. */
#include "heap/block.h"

void hk_offence_account(void);
void hk_offence_account(void)
{
    hk_offence_block();
}
