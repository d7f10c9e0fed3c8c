/* macho FILE: prints the functions of a program for macOS, as bindings/callsite/darwin/symbols.c finds them in an image in
 * memory. The file is loaded as macOS does it, at another place than it was linked for, but for what the program itself
 * would need to run. Returns 0 where each function begins in the segment with the code. */
#include "callsite/symbols.h"

#include <mach-o/loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct finding {
    const hkc_image *image;
    size_t outside;
} finding;

static void see(void *user, uintptr_t start, const char *name, const char *file)
{
    finding *f = user;
    (void)file;
    f->outside += start < f->image->low || start >= f->image->high;
    printf("%s %zx\n", name, (size_t)(start - f->image->bias));
}

static char *read_file(const char *name, size_t *size)
{
    FILE *in = fopen(name, "rb");
    if (!in || fseek(in, 0, SEEK_END) != 0) return NULL;
    *size = (size_t)ftell(in);
    char *bytes = malloc(*size);
    rewind(in);
    if (bytes && fread(bytes, 1, *size, in) != *size) return NULL;
    fclose(in);
    return bytes;
}

/* Calls the function for each segment that has a place in memory: that before the code has none. */
static void each_segment(const char *file,
                         void (*fn)(const char *, const struct segment_command_64 *, hkc_image *),
                         hkc_image *image)
{
    const struct mach_header_64 *head = (const void *)file;
    const char *at = (const char *)(head + 1);
    for (uint32_t i = 0; i < head->ncmds; i++) {
        const struct segment_command_64 *segment = (const void *)at;
        if (segment->cmd == LC_SEGMENT_64 && strcmp(segment->segname, SEG_PAGEZERO) != 0)
            fn(file, segment, image);
        at += segment->cmdsize;
    }
}

/* From where to where it goes, as the file says. */
static void measure(const char *file, const struct segment_command_64 *segment, hkc_image *image)
{
    (void)file;
    if (segment->vmaddr < image->low) image->low = segment->vmaddr;
    if (segment->vmaddr + segment->vmsize > image->high) image->high = segment->vmaddr + segment->vmsize;
}

static void load(const char *file, const struct segment_command_64 *segment, hkc_image *image)
{
    memcpy((char *)(image->bias + segment->vmaddr), file + segment->fileoff, segment->filesize);
    if (strcmp(segment->segname, SEG_TEXT) == 0)
        image->high = image->bias + segment->vmaddr + segment->vmsize;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    char *file = argc == 2 ? read_file(argv[1], &size) : NULL;
    if (!file || size < sizeof(struct mach_header_64)) return 2;
    hkc_image image = {.path = argv[1], .low = UINTPTR_MAX};
    each_segment(file, measure, &image);
    char *memory = calloc(1, image.high - image.low);
    if (!memory) return 2;
    image.bias = (uintptr_t)memory - image.low;
    image.low = (uintptr_t)memory;
    each_segment(file, load, &image);
    finding found = {&image, 0};
    const hkc_symbols_source source = hkc_symbols_read(&image, NULL, see, &found);
    free(memory);
    free(file);
    return source == HKC_SYMBOLS_SYMTAB && found.outside == 0 ? 0 : 1;
}
