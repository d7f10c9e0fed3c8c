/* One page that needs nothing else: scripts and styles from the build, the reports as they are in their
 * files, or with the names and lines that were found for them. */
#include "report.h"

#include <string.h>

/* The page before and behind the reports. */
#ifdef _WIN32
#define CONSTANTS ".section .rdata,\"dr\"\n"
#define CODE ".text\n"
#elif defined(__APPLE__)
#define CONSTANTS ".section __TEXT,__const\n"
#define CODE ".text\n"
#else
#define CONSTANTS ".pushsection .rodata\n"
#define CODE ".popsection\n"
#endif
__asm__(CONSTANTS "hkr_page_head: .incbin \"" HKR_PAGE "/head.html\"\n"
                  "hkr_page_head_end:\n"
                  "hkr_page_foot: .incbin \"" HKR_PAGE "/foot.html\"\n"
                  "hkr_page_foot_end:\n" CODE);
/* By the names that they have above: on macOS compilers put a _ before those of C. */
extern const char hkr_page_head[] __asm__("hkr_page_head"), hkr_page_head_end[] __asm__("hkr_page_head_end");
extern const char hkr_page_foot[] __asm__("hkr_page_foot"), hkr_page_foot_end[] __asm__("hkr_page_foot_end");

/* In JSON, '<' is only in texts; as it stands it could end the element that holds the data. */
static int put_text(const char *text, size_t size, void *to)
{
    FILE *out = to;
    for (const char *at = text, *end = at + size; at < end;) {
        const char *less = memchr(at, '<', (size_t)(end - at));
        const size_t n = (size_t)((less ? less : end) - at);
        fwrite(at, 1, n, out);
        if (less) fputs("\\u003c", out);
        at += n + (less != NULL);
    }
    return ferror(out) ? -1 : 0;
}

static void put_json(FILE *out, const hkr_report *r)
{
    if (r->changed) json_dump_callback(r->root, put_text, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    else put_text(r->text, r->size, out);
}

bool hkr_write_html(FILE *out, hkr_report *const *reports, size_t count, const hkr_options *o)
{
    (void)o;
    fwrite(hkr_page_head, 1, (size_t)(hkr_page_head_end - hkr_page_head), out);
    for (size_t i = 0; i < count; i++) {
        fputc(i ? ',' : '[', out);
        put_json(out, reports[i]);
    }
    fputc(']', out);
    fwrite(hkr_page_foot, 1, (size_t)(hkr_page_foot_end - hkr_page_foot), out);
    return !ferror(out);
}
