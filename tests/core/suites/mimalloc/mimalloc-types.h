/* The only number of mimalloc's inside that its own tests use. */
#define MI_ALIGNMENT_MAX (16 * 1024 * 1024UL)
