// Fuzz target: reports as files. What is refused is refused with one line; what is read is whole, and every
// writer makes of it what its readers can take.
#include "input.h"

extern "C" {
#include "report.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

namespace
{

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "fuzz_report: %s\n", what);
    std::abort();
}

hkr_report *load(const uint8_t *data, size_t size, char *error)
{
    // fmemopen takes no empty buffer.
    FILE *in = size ? fmemopen(const_cast<uint8_t *>(data), size, "rb") : std::fopen("/dev/null", "rb");
    if (!in) wrong("no stream");
    std::strcpy(error, "");
    hkr_report *report = hkr_load_stream(in, 1 << 20, "input", error);
    std::fclose(in);
    return report;
}

// By a file: one of the writers asks for its descriptor.
template <class Writer>
std::string written(Writer writer)
{
    FILE *out = std::tmpfile();
    if (!out) wrong("no file");
    if (!writer(out) || std::fflush(out) != 0) wrong("a writer failed");
    std::string result((size_t)lseek(fileno(out), 0, SEEK_END), 0);
    if (pread(fileno(out), &result[0], result.size(), 0) != (ssize_t)result.size())
        wrong("what was written is lost");
    std::fclose(out);
    return result;
}

void check(const hkr_report *report)
{
    for (size_t i = 0; i < report->context_count; i++) {
        const hkr_context &context = report->contexts[i];
        for (size_t j = 0; j < context.stack_count; j++) {
            const hkr_stack &stack = context.stacks[j];
            if (!stack.label || !stack.thread) wrong("a stack without texts");
            for (size_t k = 0; k < stack.depth; k++)
                if (stack.frames[k] >= context.frame_count) wrong("a frame that is not there");
            hkr_site(&context, &stack);
        }
        for (size_t j = 0; j < context.frame_count; j++) {
            const hkr_frame &frame = context.frames[j];
            if (!frame.function || !frame.file || !frame.module) wrong("a frame without texts");
            char text[64];
            hkr_frame_text(text, sizeof text, &frame);
            for (const char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 127) wrong("a byte that a terminal takes for a command");
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[HKR_ERROR];
    hkr_report *report = load(data, size, error);
    if (!report) {
        if (!error[0] || std::strchr(error, '\n') || std::strlen(error) >= HKR_ERROR)
            wrong("refused without a line");
        return 0;
    }
    hkr_report *again = load(data, size, error);
    if (!again) wrong("refused the second time");
    check(report);
    hkr_report *both[2] = {report, again};
    for (hkr_value by : {HKR_LIVE_BYTES, HKR_PEAK_BYTES, HKR_ALLOC_BYTES}) {
        hkr_options options = {by, 10, false, false};
        written([&](FILE *out) { return hkr_write_text(out, report, &options); });
        written([&](FILE *out) { return hkr_write_diff(out, report, again, &options); });
        written([&](FILE *out) { return hkr_write_pprof(out, both, 2, &options); });
        written([&](FILE *out) { return hkr_write_prometheus(out, both, 2, &options); });
        std::string folded = written([&](FILE *out) { return hkr_write_folded(out, both, 2, &options); });
        if (!folded.empty() && folded.back() != '\n') wrong("folded stacks end within a line");
        std::string json = written([&](FILE *out) { return hkr_write_speedscope(out, both, 2, &options); });
        json_error_t why;
        json_t *root = json_loadb(json.data(), json.size(), 0, &why);
        if (!root) wrong("speedscope's file is no JSON");
        json_decref(root);
    }
    hkr_free(again);
    hkr_free(report);
    return 0;
}
