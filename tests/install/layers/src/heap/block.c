#include "heap/block.h"

void hk_offence_block(void)
{
}
