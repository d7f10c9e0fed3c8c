// A host in C without a binding: its reports, as the command reads them; tables of frames; labels by call
// site.

extern "C" {
#include "report/src/report.h"
}

#include "host.h"
#include "machine.h"

#include "../support/nth.h"

#include "catch.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

struct Folder {
    char path[64] = "/tmp/hakmem-host-XXXXXX";
    std::string file;
    Folder()
    {
        file = std::string(mkdtemp(path)) + "/report.json";
    }
    ~Folder()
    {
        unlink(file.c_str());
        CHECK(rmdir(path) == 0); // nothing else is left in it
    }
};

struct Frames {
    hak_frames *table;
    explicit Frames(size_t most = 0) : table(hak_frames_new(most))
    {
        REQUIRE(table);
    }
    Frames(const Frames &) = delete;
    ~Frames()
    {
        hak_frames_delete(table);
    }
    size_t lost() const
    {
        size_t lost = 0;
        hak_frames_count(table, &lost);
        return lost;
    }
};

// A report as `hakmem report` reads it.
struct Read {
    char error[HKR_ERROR] = "";
    std::string path;
    hkr_report *report;
    explicit Read(const std::string &file) : path(file), report(hkr_load(path.c_str(), error))
    {
    }
    Read(const Read &) = delete;
    ~Read()
    {
        hkr_free(report);
    }
    const hkr_context &context(size_t i) const
    {
        return report->contexts[i];
    }
    // The frames of the stack with this label, the innermost first.
    std::vector<hkr_frame> stack(const std::string &label) const
    {
        const hkr_context &c = context(0);
        std::vector<hkr_frame> frames;
        for (size_t i = 0; i < c.stack_count; i++)
            if (c.stacks[i].label == label)
                for (size_t k = 0; k < c.stacks[i].depth; k++)
                    frames.push_back(c.frames[c.stacks[i].frames[k]]);
        return frames;
    }
};

int put_string(void *to, const char *bytes, size_t n)
{
    static_cast<std::string *>(to)->append(bytes, n);
    return 0;
}

std::string text_of(hak_ctx *ctx)
{
    std::string text;
    hak_report_options options = HAK_REPORT_OPTIONS_INIT;
    options.form = HAK_REPORT_TEXT;
    CHECK(hak_report_put(put_string, &text, &ctx, 1, &options) == 0);
    return text;
}

// A stack of an interpreter's frame, one that the host names itself, and machine code.
struct Stack {
    uintptr_t frames[3];
    static size_t read(void *user, hak_ctx *, hak_site, uintptr_t *out, size_t room)
    {
        REQUIRE(room >= 3);
        memcpy(out, static_cast<Stack *>(user)->frames, sizeof frames);
        return 3;
    }
};

enum : uintptr_t { OWN_NUMBER = 4711 };

bool name_own(void *user, const hak_ctx *ctx, uintptr_t frame, hak_report_frame *out)
{
    REQUIRE(ctx == user);
    REQUIRE(!out->function);
    if (frame != OWN_NUMBER) return false;
    out->function = "prelude";
    out->module = "core.vm";
    return true;
}

struct Profiled : Heap {
    Frames frames;
    Stack stack;
    Profiled()
    {
        hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
        stack = {{hak_frames_add(frames.table, "handle", "a.vm", 7), OWN_NUMBER,
                  reinterpret_cast<uintptr_t>(machine_string) + 1}};
        profile.mode = HAK_PROFILE_EXACT;
        profile.frames = Stack::read;
        profile.user = &stack;
        REQUIRE(hak_profile_start(ctx, &profile) == 0);
        REQUIRE(hak_alloc_cs(ctx, 100, hak_label_define(ctx, "string"), 0));
    }
    hak_report_options options()
    {
        hak_report_options o = HAK_REPORT_OPTIONS_INIT;
        o.runtime = "myvm";
        o.version = "2.0";
        o.frames = frames.table;
        o.frame = name_own;
        o.user = ctx;
        return o;
    }
};

} // namespace

// ---- Reports
// -----------------------------------------------------------------------------------------------

TEST_CASE("host: the command reads a report, with its process, labels and names of three kinds of frames")
{
    Folder folder;
    Profiled vm;
    const hak_report_options options = vm.options();
    REQUIRE(hak_report_path(folder.file.c_str(), &vm.ctx, 1, &options) == 0);
    Read read(folder.file);
    INFO(read.error);
    REQUIRE(read.report);
    CHECK(hkr_number(read.report->process, "pid") == getpid());
    CHECK(hkr_number(read.report->memory, "resident_bytes") > 0);
    const json_t *runtime = json_object_get(read.report->process, "runtime");
    CHECK(std::string(hkr_text(runtime, "name")) == "myvm");
    CHECK(std::string(hkr_text(runtime, "version")) == "2.0");
    REQUIRE(read.report->context_count == 1);
    CHECK(std::string(read.context(0).name) == "vm");
    CHECK(hkr_number(read.context(0).stats, "live_blocks") == 1);

    const std::vector<hkr_frame> stack = read.stack("string");
    REQUIRE(stack.size() == 3);
    CHECK(std::string(stack[0].function) == "handle");
    CHECK(std::string(stack[0].file) == "a.vm");
    CHECK(stack[0].line == 7);
    CHECK(!stack[0].native);
    CHECK(std::string(stack[1].function) == "prelude");
    CHECK(std::string(stack[1].module) == "core.vm");
    CHECK(std::string(stack[2].function).substr(0, 14) == "machine_string");
    CHECK(stack[2].native);
}

TEST_CASE("host: without options the runtime is c, and what nobody named is shown as a number")
{
    Folder folder;
    Profiled vm;
    REQUIRE(hak_report_path(folder.file.c_str(), &vm.ctx, 1, nullptr) == 0);
    Read read(folder.file);
    REQUIRE(read.report);
    CHECK(std::string(hkr_text(json_object_get(read.report->process, "runtime"), "name")) == "c");
    const std::vector<hkr_frame> stack = read.stack("string");
    REQUIRE(stack.size() == 3);
    CHECK(std::string(stack[0].function) == "0x8000000000000001");
    CHECK(std::string(stack[1].function) == "0x1267");
}

TEST_CASE("host: a report has all of its contexts, to a file, a stream and a function alike")
{
    Folder folder;
    Heap one("one"), two("two");
    hak_ctx *const both[] = {one.ctx, two.ctx};
    std::string text;
    REQUIRE(hak_report_put(put_string, &text, both, 2, nullptr) == 0);
    CHECK(text.substr(0, 29) == "{\"schema\":\"hakmem-report/1\",\"");
    CHECK(text.back() == '\n');

    FILE *out = fopen(folder.file.c_str(), "w");
    REQUIRE(hak_report_stream(out, both, 2, nullptr) == 0);
    CHECK(ftell(out) > 100); // it is open
    for (int i = 0; i < 2; i++) {
        Read read(folder.file);
        REQUIRE(read.report);
        REQUIRE(read.report->context_count == 2);
        CHECK(std::string(read.context(1).name) == "two");
        if (i == 0) REQUIRE(hak_report_path(folder.file.c_str(), both, 2, nullptr) == 0);
    }
    fclose(out);
}

TEST_CASE("host: a report for people has a table of labels where there are labels")
{
    Heap heap;
    REQUIRE(hak_alloc(heap.ctx, 100));
    CHECK(text_of(heap.ctx).find("100 bytes in 1 blocks") == std::string::npos); // of usable bytes
    CHECK(text_of(heap.ctx).find("bytes in 1 blocks") != std::string::npos);
    CHECK(text_of(heap.ctx).find("unlabelled") == std::string::npos);
    REQUIRE(hak_alloc_cs(heap.ctx, 100, hak_label_define(heap.ctx, "table"), 0));
    CHECK(text_of(heap.ctx).find("\n  table ") != std::string::npos);
    CHECK(text_of(heap.ctx).find("\n  unlabelled ") != std::string::npos);
}

TEST_CASE("host: broken options and contexts are refused, and nothing is written")
{
    Folder folder;
    Heap heap;
    hak_ctx *none = nullptr;
    const char *file = folder.file.c_str();
    struct larger {
        hak_report_options known;
        size_t more; // no padding, which is not zero
    } later = {HAK_REPORT_OPTIONS_INIT, 1};
    later.known.size = sizeof later;
    hak_report_options odd = HAK_REPORT_OPTIONS_INIT;
    const int form = 2;
    memcpy(&odd.form, &form, sizeof form);
    CHECK(hak_report_path(file, &none, 1, nullptr) == EINVAL);
    CHECK(hak_report_path(file, &heap.ctx, 0, nullptr) == EINVAL);
    CHECK(hak_report_path(file, nullptr, 1, nullptr) == EINVAL);
    CHECK(hak_report_path(nullptr, &heap.ctx, 1, nullptr) == EINVAL);
    CHECK(hak_report_path(file, &heap.ctx, 1, &later.known) == EINVAL);
    CHECK(hak_report_path(file, &heap.ctx, 1, &odd) == EINVAL);
    CHECK(hak_report_stream(nullptr, &heap.ctx, 1, nullptr) == EINVAL);
    CHECK(hak_report_put(nullptr, nullptr, &heap.ctx, 1, nullptr) == EINVAL);
    CHECK(access(file, F_OK) != 0);

    // Those of a program that knows less, and of one that knows more and does not use it.
    hak_report_options earlier = HAK_REPORT_OPTIONS_INIT;
    earlier.size = offsetof(hak_report_options, runtime);
    earlier.runtime = reinterpret_cast<const char *>(1);
    later.more = 0;
    CHECK(hak_report_path(file, &heap.ctx, 1, &earlier) == 0);
    CHECK(hak_report_path(file, &heap.ctx, 1, &later.known) == 0);
}

TEST_CASE("host: what cannot be written is told, and the file that was there stays")
{
    Folder folder;
    Heap heap;
    const std::string nowhere = std::string(folder.path) + "/none/report.json";
    CHECK(hak_report_path(nowhere.c_str(), &heap.ctx, 1, nullptr) == ENOENT);
    CHECK(hak_report_path("/dev/full", &heap.ctx, 1, nullptr) == ENOSPC);
    CHECK(hak_report_path(folder.path, &heap.ctx, 1, nullptr) == EISDIR);
    FILE *full = fopen("/dev/full", "w");
    CHECK(hak_report_stream(full, &heap.ctx, 1, nullptr) == ENOSPC);
    fclose(full);
    FILE *in = fopen("/dev/null", "r");
    CHECK(hak_report_stream(in, &heap.ctx, 1, nullptr) == EBADF);
    fclose(in);

    // Nobody reads it: an error, and no signal that ends the program.
    const std::string fifo = folder.file;
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(hak_report_path(fifo.c_str(), &heap.ctx, 1, nullptr) == ENXIO);
    unlink(fifo.c_str());
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    close(ends[0]);
    CHECK(hak_report_path(("/dev/fd/" + std::to_string(ends[1])).c_str(), &heap.ctx, 1, nullptr) != 0);
    close(ends[1]);

    struct refusing {
        int calls;
        static int put(void *to, const char *, size_t)
        {
            static_cast<refusing *>(to)->calls++;
            return EDQUOT;
        }
    } r = {0};
    for (int i = 0; i < 200; i++) // more than one piece
        REQUIRE(
            hak_alloc_cs(heap.ctx, 8, hak_label_define(heap.ctx, ("label " + std::to_string(i)).c_str()), 0));
    CHECK(hak_report_put(refusing::put, &r, &heap.ctx, 1, nullptr) == EDQUOT);
    CHECK(r.calls == 1);

    REQUIRE(hak_report_path(folder.file.c_str(), &heap.ctx, 1, nullptr) == 0);
    const Read before(folder.file);
    if (geteuid() != 0) {
        REQUIRE(chmod(folder.file.c_str(), 0400) == 0);
        CHECK(hak_report_path(folder.file.c_str(), &heap.ctx, 1, nullptr) == EACCES);
    }
    rlimit small = {1000, RLIM_INFINITY}, old;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const int error = hak_report_path(folder.file.c_str(), &heap.ctx, 1, nullptr);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(error == EFBIG);
    const Read after(folder.file);
    REQUIRE(after.report);
    CHECK(std::string(before.report->text) == after.report->text);
}

// ---- Tables of frames
// --------------------------------------------------------------------------------------

TEST_CASE("host: a frame has one number, and other texts and lines have others")
{
    Frames frames;
    const uintptr_t first = hak_frames_add(frames.table, "f", "a.vm", 1);
    CHECK(hak_frames_add(frames.table, std::string("f").c_str(), std::string("a.vm").c_str(), 1) == first);
    std::set<uintptr_t> all = {first};
    CHECK(all.insert(hak_frames_add(frames.table, "f", "a.vm", 2)).second);
    CHECK(all.insert(hak_frames_add(frames.table, "f", "b.vm", 1)).second);
    CHECK(all.insert(hak_frames_add(frames.table, "g", "a.vm", 1)).second);
    CHECK(all.insert(hak_frames_add(frames.table, "fa.vm", "", 1)).second);
    CHECK(all.insert(hak_frames_add(frames.table, "f", nullptr, 1)).second);
    CHECK(all.insert(hak_frames_add(frames.table, nullptr, "f", 1)).second);
    CHECK(all.insert(hak_frames_add(frames.table, nullptr, nullptr, 0)).second);
    CHECK(hak_frames_add(frames.table, nullptr, nullptr, -5) == *all.rbegin());
    CHECK(hak_frames_count(frames.table, nullptr) == all.size());
    CHECK(all.count(HAK_FRAME_LOST) == 0);

    hak_report_frame out = {};
    REQUIRE(hak_frames_find(frames.table, first, &out));
    CHECK(std::string(out.function) == "f");
    CHECK(std::string(out.file) == "a.vm");
    CHECK(out.line == 1);
    CHECK(!hak_frames_find(frames.table, first + 100, &out));
    CHECK(!hak_frames_find(frames.table, reinterpret_cast<uintptr_t>(&out), &out));
    CHECK(std::string(out.function) == "f"); // as it was
}

TEST_CASE("host: a long text is cut, and is the same text again")
{
    Frames frames;
    const std::string longer(5000, 'x'), longest(9000, 'x');
    const uintptr_t number = hak_frames_add(frames.table, longer.c_str(), nullptr, 1);
    CHECK(hak_frames_add(frames.table, longest.c_str(), nullptr, 1) == number);
    hak_report_frame out = {};
    REQUIRE(hak_frames_find(frames.table, number, &out));
    CHECK(std::string(out.function) == std::string(4095, 'x'));
}

TEST_CASE("host: a table of frames grows up to its size, and then says what it has lost")
{
    const size_t most = 5000;
    Frames frames(most);
    std::set<uintptr_t> all;
    for (size_t i = 0; i < most; i++)
        all.insert(hak_frames_add(frames.table, std::to_string(i).c_str(), "a.vm", 1));
    CHECK(all.size() == most);
    CHECK(frames.lost() == 0);
    CHECK(hak_frames_add(frames.table, "one more", "a.vm", 1) == HAK_FRAME_LOST);
    CHECK(hak_frames_add(frames.table, "4999", "a.vm", 1) == *all.rbegin()); // is there
    CHECK(frames.lost() == 1);
    CHECK(hak_frames_count(frames.table, nullptr) == most);
    hak_report_frame out = {};
    REQUIRE(hak_frames_find(frames.table, HAK_FRAME_LOST, &out));
    CHECK(std::string(out.function) == "(no room for the frame)");
    CHECK(!hak_frames_new(((size_t)1 << 24) + 1));
}

TEST_CASE("host: threads that add the same frames get the same numbers")
{
    Frames frames;
    std::vector<std::vector<uintptr_t>> seen(4);
    std::vector<std::thread> threads;
    for (auto &own : seen)
        threads.emplace_back([&frames, &own] {
            for (int i = 0; i < 3000; i++)
                own.push_back(hak_frames_add(frames.table, "f", "a.vm", i + 1));
        });
    for (auto &thread : threads)
        thread.join();
    for (const auto &own : seen)
        CHECK(own == seen[0]);
    CHECK(hak_frames_count(frames.table, nullptr) == 3000);
}

#if defined(__x86_64__) && defined(__linux__)

TEST_CASE("host: the stack of machine code begins at the place that asked")
{
    Folder folder;
    Heap heap;
    hak_profile_options profile = HAK_PROFILE_OPTIONS_INIT;
    profile.mode = HAK_PROFILE_EXACT;
    profile.frames = hak_native_frames;
    REQUIRE(hak_profile_start(heap.ctx, &profile) == 0);
    REQUIRE(machine_site(heap.ctx, 100));
    REQUIRE(hak_report_path(folder.file.c_str(), &heap.ctx, 1, nullptr) == 0);
    Read read(folder.file);
    REQUIRE(read.report);
    const std::vector<hkr_frame> stack = read.stack("unlabelled");
    REQUIRE(stack.size() > 2);
    CHECK(std::string(stack[0].function).substr(0, 12) == "machine_site");
    CHECK(stack[0].native);

    uintptr_t frames[4] = {0, 0, 0, 17};
    CHECK(hak_native_frames(nullptr, heap.ctx, 0, frames, 3) == 3); // of no site: all
    CHECK(frames[3] == 17);
}

// ---- Labels by call site
// -----------------------------------------------------------------------------------

namespace
{

std::string label_at(hak_ctx *ctx, void *p)
{
    struct look {
        void *p;
        hak_label label;
    } l = {p, 0};
    hak_ctx_visit(
        ctx,
        [](void *user, const hak_block *block) {
            auto *look = static_cast<struct look *>(user);
            if (block->p == look->p) look->label = block->label;
            return true;
        },
        &l);
    return l.label ? hak_label_name(ctx, l.label) : "";
}

struct Sites {
    hak_sites_options options = HAK_SITES_OPTIONS_INIT;
    hak_sites *sites;
    Sites(const std::vector<hak_site_rule> &rules, hak_ctx *ctx)
    {
        options.rules = rules.data();
        options.rule_count = rules.size();
        options.ctx = ctx;
        options.image = reinterpret_cast<const void *>(machine_string);
        sites = hak_sites_new(&options);
    }
    Sites(const Sites &) = delete;
    ~Sites()
    {
        hak_sites_delete(sites);
    }
};

} // namespace

TEST_CASE("host: rules name the labels of many contexts, and what is in none takes memory for its callers")
{
    Sites by({{"machine_str", "string"}, {"machine_ta", "table"}, {"machine_wrap", "string"}}, nullptr);
    REQUIRE(by.sites);
    for (int i = 0; i < 2; i++) {
        hak_options options = HAK_OPTIONS_INIT;
        options.labels = hak_sites_labels(by.sites, &options.label_count);
        REQUIRE(options.label_count == 2);
        hak_ctx *ctx = hak_ctx_new(nullptr, &options);
        machine m = {ctx, by.sites};
        for (int k = 0; k < 3; k++) { // not known, then known
            CHECK(label_at(ctx, machine_string(&m, 40)) == "string");
            CHECK(label_at(ctx, machine_table(&m, 40)) == "table");
            CHECK(label_at(ctx, machine_wrapped(&m, 40)) == "string"); // by grow_buffer
            CHECK(label_at(ctx, machine_many(&m, 7, 40)) == "");
        }
        hak_ctx_destroy(ctx);
    }
}

TEST_CASE("host: without rules each function that asks is a label of its own")
{
    Heap heap;
    Sites by({{"grow_", nullptr}, {"machine_table", "tables"}}, heap.ctx);
    REQUIRE(by.sites);
    size_t count = 1;
    CHECK(!hak_sites_labels(by.sites, &count));
    CHECK(count == 0);
    machine m = {heap.ctx, by.sites};
    for (int k = 0; k < 3; k++) {
        CHECK(label_at(heap.ctx, machine_string(&m, 40)) == "machine_string");
        CHECK(label_at(heap.ctx, machine_table(&m, 40)) == "tables");
        CHECK(label_at(heap.ctx, machine_wrapped(&m, 40)) == "machine_wrapped");
        CHECK(label_at(heap.ctx, machine_many(&m, 17, 40)) == "ask_17");
    }
}

TEST_CASE("host: when there are no labels left, functions further up label")
{
    Heap heap;
    Sites by({}, heap.ctx);
    REQUIRE(by.sites);
    machine m = {heap.ctx, by.sites};
    size_t own = 0, above = 0;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < MACHINE_MANY; i++) {
            const std::string label = label_at(heap.ctx, machine_many(&m, i, 40));
            CAPTURE(i, label);
            if (label == "machine_many") above++;
            else if (label == "ask_" + std::to_string(i / 10) + std::to_string(i % 10)) own++;
        }
    CHECK(own == 2 * (HAK_LABELS_MAX - 1));
    CHECK(above == 2 * (MACHINE_MANY - (HAK_LABELS_MAX - 1)));
}

TEST_CASE("host: a limit may refuse the memory of a label, which comes later")
{
    Heap heap;
    Sites by({}, heap.ctx);
    machine m = {heap.ctx, by.sites};
    hak_limit(heap.ctx, 0, 1, nullptr, nullptr);
    machine_string(&m, 40);
    hak_limit(heap.ctx, 0, 0, nullptr, nullptr);
    CHECK(label_at(heap.ctx, machine_string(&m, 40)) == "machine_string");
}

TEST_CASE("host: sites that fit nothing, and broken options, are refused")
{
    Heap heap;
    CHECK(!hak_sites_new(nullptr));
    CHECK(!Sites({}, nullptr).sites);
    CHECK(!Sites({{"no function begins so", "x"}}, nullptr).sites);
    CHECK(!Sites({{nullptr, "x"}, {"machine", "y"}}, nullptr).sites);
    hak_sites_options options = HAK_SITES_OPTIONS_INIT;
    options.rule_count = 1;
    CHECK(!hak_sites_new(&options));
    options = HAK_SITES_OPTIONS_INIT;
    options.ctx = heap.ctx;
    options.image = heap.ctx; // in no image
    CHECK(!hak_sites_new(&options));
    std::vector<std::string> names(HAK_LABELS_MAX + 1);
    std::vector<hak_site_rule> rules;
    for (size_t i = 0; i < names.size(); i++) {
        names[i] = "label " + std::to_string(i);
        rules.push_back({"machine_", names[i].c_str()});
    }
    CHECK(!Sites(rules, nullptr).sites);
    rules.pop_back();
    CHECK(Sites(rules, nullptr).sites);
    hak_sites_delete(nullptr);

    // Options of a program that knows less, and of one that knows more and uses it.
    struct larger {
        hak_sites_options known;
        size_t more; // no padding, which is not zero
    } later = {HAK_SITES_OPTIONS_INIT, 1};
    later.known.size = sizeof later;
    later.known.rules = rules.data();
    later.known.rule_count = 1;
    later.known.image = reinterpret_cast<const void *>(machine_string);
    CHECK(!hak_sites_new(&later.known));
    later.more = 0;
    hak_sites_delete(hak_sites_new(&later.known));
    hak_sites_options earlier = later.known;
    earlier.size = offsetof(hak_sites_options, ctx);
    earlier.ctx = reinterpret_cast<hak_ctx *>(1);
    hak_sites *sites = hak_sites_new(&earlier); // of the program of the caller
    CHECK(sites);
    hak_sites_delete(sites);
    size_t count = 1;
    CHECK(!hak_sites_labels(nullptr, &count));
    CHECK(count == 0);
    machine m = {heap.ctx, nullptr};
    CHECK(label_at(heap.ctx, machine_string(&m, 40)) == "");
}

#endif

#ifdef WITH_NTH

// ---- No memory
// ---------------------------------------------------------------------------------------------

TEST_CASE("host: whichever request for pages fails, what is written is whole and nothing leaks")
{
    Folder folder;
    Profiled vm;
    hak_site_rule rule = {"machine_", "x"};
    const int64_t before = nth_mapped();
    size_t whole = 0, partly = 0, none = 0;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        CAPTURE(n);
        nth_fail(n, 0);
        hak_frames *frames = hak_frames_new(0);
        if (frames) {
            const uintptr_t number = hak_frames_add(frames, "f", "a.vm", 1);
            CHECK(number != 0);
            hak_report_frame out = {};
            CHECK(hak_frames_find(frames, number, &out));
        }
        hak_sites_options by = HAK_SITES_OPTIONS_INIT;
        by.rules = &rule;
        by.rule_count = 1;
        by.image = reinterpret_cast<const void *>(machine_string);
        hak_sites *sites = hak_sites_new(&by);
        none += !sites || !frames;
        hak_report_options options = vm.options();
        const int error = hak_report_path(folder.file.c_str(), &vm.ctx, 1, &options);
        failed = nth_failed() > 0;
        nth_fail(0, 0);
        CHECK((error == 0 || error == ENOMEM));
        whole += error == 0;
        partly += error == ENOMEM;
        Read read(folder.file);
        INFO(read.error);
        REQUIRE(read.report);
        CHECK(read.context(0).stack_count == 1);
        if (!error) CHECK(read.stack("string").size() == 3);
        hak_frames_delete(frames);
        hak_sites_delete(sites);
    }
    CHECK(whole > 1);
    CHECK(partly > 0);
    CHECK(none > 1);
    CHECK(nth_mapped() == before);
}

#endif
