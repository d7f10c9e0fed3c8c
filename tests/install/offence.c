/* One symbol of each kind that symbols.sh must find. */
#define KEEP __attribute__((used))

__attribute__((common)) int hk_offence_common;
int hk_offence_data = 1;
int hk_offence_bss = 0;
__thread int hk_offence_tls;
static int offence_static_data KEEP = 1;
static int offence_static_bss KEEP;
static __thread int offence_static_tls KEEP = 1;
/* Position-independent code has to relocate it at load time: not read-only on disk. */
static const char *const offence_relocated[] KEEP = {"a", "b"};
void offence_name(void);
void offence_name(void)
{
}
