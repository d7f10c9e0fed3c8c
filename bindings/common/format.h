/* Functions that take formats as printf does, which the compiler checks. */
#ifndef HKC_FORMAT_H
#define HKC_FORMAT_H

#include <stdio.h>

/* MinGW's own printf knows C99's formats where __USE_MINGW_ANSI_STDIO is set, which the compiler has to be told. */
#ifdef __MINGW_PRINTF_FORMAT
#define HKC_FORMAT(format_at, arguments_at)                                                                  \
    __attribute__((format(__MINGW_PRINTF_FORMAT, format_at, arguments_at)))
#else
#define HKC_FORMAT(format_at, arguments_at) __attribute__((format(printf, format_at, arguments_at)))
#endif

#endif
