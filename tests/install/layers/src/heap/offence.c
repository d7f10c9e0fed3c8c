/* A module that has no place in the order, and knows the system and the processor. */
#ifdef __linux__
#include <unistd.h>
#endif

void hk_offence_strange(void);
void hk_offence_strange(void)
{
    __asm__ volatile("nop");
    /* What compilers cannot see through is no instruction. */
    __asm__("" : : : "memory");
}
