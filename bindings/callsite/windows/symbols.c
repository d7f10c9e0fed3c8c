/* Names of functions on Windows: the table of symbols that GNU linkers put behind the sections of a program or library
 * (format COFF), else the exports. What Microsoft's linker writes, a file .pdb, is not read. */
#include "callsite/symbols.h"

#include <stdio.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* A file while it is read, as it is on the disk. */
typedef struct reading {
    const char *file;
    size_t size;
} reading;

static bool map_file(reading *r, const char *path)
{
    LARGE_INTEGER size = {.QuadPart = 0};
    const HANDLE file =
        CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return false;
    const HANDLE mapping =
        GetFileSizeEx(file, &size) ? CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL) : NULL;
    r->file = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
    r->size = (size_t)size.QuadPart;
    if (mapping) CloseHandle(mapping);
    CloseHandle(file);
    return r->file;
}

static const void *inside(const reading *r, uint64_t offset, uint64_t size)
{
    return offset <= r->size && size <= r->size - offset ? r->file + offset : NULL;
}

/* NULL = it is no program and no library of 64 bits. */
static const IMAGE_NT_HEADERS64 *head_of(const reading *r)
{
    const IMAGE_DOS_HEADER *dos = inside(r, 0, sizeof *dos);
    if (!dos || dos->e_magic != IMAGE_DOS_SIGNATURE || dos->e_lfanew < 0) return NULL;
    const IMAGE_NT_HEADERS64 *head = inside(r, (uint64_t)dos->e_lfanew, sizeof *head);
    if (!head || head->Signature != IMAGE_NT_SIGNATURE) return NULL;
    return head->OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC ? head : NULL;
}

/* Copies the name of a symbol, which is in the symbol or in the texts behind the table. false = it is broken. */
static bool name_of(const IMAGE_SYMBOL *symbol, const char *texts, size_t texts_size, char *name, size_t size)
{
    const char *from = (const char *)symbol->N.ShortName;
    size_t most = sizeof symbol->N.ShortName;
    if (symbol->N.Name.Short == 0) {
        if (symbol->N.Name.Long >= texts_size) return false;
        from = texts + symbol->N.Name.Long;
        most = texts_size - symbol->N.Name.Long;
    }
    size_t n = strnlen(from, most);
    if (n > size - 1) n = size - 1;
    memcpy(name, from, n);
    name[n] = '\0';
    return n > 0;
}

/* The name of a source file fills the entries behind its symbol. */
static void file_of(const IMAGE_SYMBOL *symbol, char *file, size_t size)
{
    size_t n = strnlen((const char *)(symbol + 1), symbol->NumberOfAuxSymbols * sizeof *symbol);
    if (n > size - 1) n = size - 1;
    memcpy(file, symbol + 1, n);
    file[n] = '\0';
}

static size_t visit_symbols(const reading *r, const hkc_image *image, hkc_symbols_visit *visit, void *user)
{
    enum { FUNCTION = 0x20 }; /* IMAGE_SYM_DTYPE_FUNCTION */
    const IMAGE_NT_HEADERS64 *head = head_of(r);
    if (!head || head->FileHeader.PointerToSymbolTable == 0) return 0;
    const size_t count = head->FileHeader.NumberOfSymbols, sections = head->FileHeader.NumberOfSections;
    const IMAGE_SYMBOL *table = inside(r, head->FileHeader.PointerToSymbolTable, count * sizeof *table);
    const char *first = (const char *)&head->OptionalHeader + head->FileHeader.SizeOfOptionalHeader;
    const IMAGE_SECTION_HEADER *section =
        inside(r, (uint64_t)(first - r->file), sections * sizeof(IMAGE_SECTION_HEADER));
    if (!table || !section) return 0;
    const char *texts = (const char *)(table + count), *end = r->file + r->size;
    char name[1024], file[260] = "";
    size_t visited = 0;
    for (size_t i = 0; i < count; i += (size_t)table[i].NumberOfAuxSymbols + 1) {
        const IMAGE_SYMBOL *s = &table[i];
        if (s->StorageClass == IMAGE_SYM_CLASS_FILE && s->NumberOfAuxSymbols < count - i)
            file_of(s, file, sizeof file);
        const bool local = s->StorageClass == IMAGE_SYM_CLASS_STATIC;
        if ((!local && s->StorageClass != IMAGE_SYM_CLASS_EXTERNAL) || s->Type != FUNCTION) continue;
        if (s->SectionNumber < 1 || (size_t)s->SectionNumber > sections) continue;
        if (!name_of(s, texts, (size_t)(end - texts), name, sizeof name)) continue;
        visit(user, image->bias + section[s->SectionNumber - 1].VirtualAddress + s->Value, name,
              local && file[0] ? file : NULL);
        visited++;
    }
    return visited;
}

/* Of the image in memory, whose tables the loader has checked. */
static size_t visit_exports(const hkc_image *image, hkc_symbols_visit *visit, void *user)
{
    const char *base = (const char *)image->low;
    const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)(const void *)base;
    const IMAGE_NT_HEADERS64 *head = (const IMAGE_NT_HEADERS64 *)(const void *)(base + dos->e_lfanew);
    const IMAGE_DATA_DIRECTORY *at = &head->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXPORT];
    if (at->VirtualAddress == 0) return 0;
    const IMAGE_EXPORT_DIRECTORY *exports =
        (const IMAGE_EXPORT_DIRECTORY *)(const void *)(base + at->VirtualAddress);
    const DWORD *names = (const DWORD *)(const void *)(base + exports->AddressOfNames);
    const DWORD *functions = (const DWORD *)(const void *)(base + exports->AddressOfFunctions);
    const WORD *ordinals = (const WORD *)(const void *)(base + exports->AddressOfNameOrdinals);
    size_t visited = 0;
    for (DWORD i = 0; i < exports->NumberOfNames; i++) {
        const DWORD function = functions[ordinals[i]];
        if (function - at->VirtualAddress < at->Size) continue; /* leads to another library */
        visit(user, image->low + function, base + names[i], NULL);
        visited++;
    }
    return visited;
}

hkc_symbols_source hkc_symbols_read(const hkc_image *image, const char *debug_root, hkc_symbols_visit *visit,
                                    void *user)
{
    char path[HKC_IMAGE_PATH];
    reading r = {NULL, 0};
    size_t visited = 0;
    (void)debug_root;
    if (GetModuleFileNameA((HMODULE)image->low, path, sizeof path) && map_file(&r, path)) {
        visited = visit_symbols(&r, image, visit, user);
        UnmapViewOfFile(r.file);
    }
    if (visited > 0) return HKC_SYMBOLS_SYMTAB;
    return visit_exports(image, visit, user) > 0 ? HKC_SYMBOLS_DYNSYM : HKC_SYMBOLS_NONE;
}
