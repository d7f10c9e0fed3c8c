/* The functions that wasmtime's library for musl takes from gcc's libgcc_s, which Debian has for glibc alone. A
 * guest that returns unwinds nothing, so the functions that walk up a stack end the program. */
#include <stdlib.h>

#define NOT_HERE(name)                                                                                       \
    void name(void);                                                                                         \
    void name(void)                                                                                          \
    {                                                                                                        \
        abort();                                                                                             \
    }

NOT_HERE(_Unwind_Backtrace)
NOT_HERE(_Unwind_FindEnclosingFunction)
NOT_HERE(_Unwind_GetCFA)
NOT_HERE(_Unwind_GetDataRelBase)
NOT_HERE(_Unwind_GetIP)
NOT_HERE(_Unwind_GetIPInfo)
NOT_HERE(_Unwind_GetLanguageSpecificData)
NOT_HERE(_Unwind_GetRegionStart)
NOT_HERE(_Unwind_GetTextRelBase)
NOT_HERE(_Unwind_Resume)
NOT_HERE(_Unwind_SetGR)
NOT_HERE(_Unwind_SetIP)

/* wasmtime announces the code of each guest. */
void __register_frame(const void *frames);
void __register_frame(const void *frames)
{
    (void)frames;
}

void __deregister_frame(const void *frames);
void __deregister_frame(const void *frames)
{
    (void)frames;
}
