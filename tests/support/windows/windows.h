/* What core/src/base/os_windows.c asks of Windows, on Linux: windows.c keeps the rules of the calls, and ends
 * the program where one is broken. */
#ifndef TEST_WINDOWS_H
#define TEST_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int DWORD;
typedef int BOOL;
typedef size_t SIZE_T;
typedef unsigned int ULONG;
typedef void *HANDLE;
typedef void *HMODULE;
typedef void (*FARPROC)(void);
#define WINAPI
typedef struct MEMORY_BASIC_INFORMATION {
    void *BaseAddress;
    size_t RegionSize;
    DWORD State;
} MEMORY_BASIC_INFORMATION;
typedef struct MEM_ADDRESS_REQUIREMENTS {
    void *LowestStartingAddress;
    void *HighestEndingAddress;
    size_t Alignment;
} MEM_ADDRESS_REQUIREMENTS;
typedef struct MEM_EXTENDED_PARAMETER {
    uint64_t Type;
    void *Pointer;
} MEM_EXTENDED_PARAMETER;
typedef struct SYSTEM_INFO {
    void *lpMaximumApplicationAddress;
} SYSTEM_INFO;
typedef union LARGE_INTEGER {
    long long QuadPart;
} LARGE_INTEGER;

enum {
    FALSE,
    MEM_COMMIT = 0x1000,
    MEM_RESERVE = 0x2000,
    MEM_DECOMMIT = 0x4000,
    MEM_RELEASE = 0x8000,
    MEM_FREE = 0x10000,
    MemExtendedParameterAddressRequirements = 1,
    PAGE_NOACCESS = 1,
    PAGE_READWRITE = 4,
    SYNCHRONIZE = 0x100000,
    THREAD_QUERY_LIMITED_INFORMATION = 0x800,
    ERROR_INVALID_PARAMETER = 87,
    WAIT_TIMEOUT = 258
};

void *VirtualAlloc(void *p, size_t n, DWORD kind, DWORD protection);
void GetSystemInfo(SYSTEM_INFO *info);
HMODULE GetModuleHandleA(const char *name);
FARPROC GetProcAddress(HMODULE library, const char *name);
BOOL VirtualFree(void *p, size_t n, DWORD kind);
BOOL VirtualProtect(void *p, size_t n, DWORD protection, DWORD *before);
size_t VirtualQuery(const void *p, MEMORY_BASIC_INFORMATION *region, size_t size);
BOOL QueryPerformanceCounter(LARGE_INTEGER *now);
BOOL QueryPerformanceFrequency(LARGE_INTEGER *per_second);
DWORD GetCurrentThreadId(void);
DWORD GetCurrentProcessId(void);
DWORD GetProcessIdOfThread(HANDLE thread);
DWORD GetLastError(void);
HANDLE OpenThread(DWORD access, BOOL inherit, DWORD id);
DWORD WaitForSingleObject(HANDLE thread, DWORD ms);
BOOL CloseHandle(HANDLE thread);
BOOL SwitchToThread(void);
void Sleep(DWORD ms);

#endif
