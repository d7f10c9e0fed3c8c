"""Programs whose malloc is not the shim's: one of a sanitizer, of the program itself, of another library."""

import os
import subprocess

from shim import SHIM, Case, main, reports

PROGRAM = r"""
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    char *a = malloc(100), *b = calloc(10, 10), *c = aligned_alloc(64, 128), *d = realloc(strdup("text"), 5000);
    void *e = NULL;
    int wrong = b[99] != 0 || (uintptr_t)c % 64 || strcmp(d, "text") || posix_memalign(&e, 4096, 1) || !e;
    wrong |= malloc_usable_size(a) < 100;
    if (argc > 1) a[100] = (char)argc;
    free(a), free(b), free(c), free(d), free(e);
    puts(wrong ? "wrong" : argv[0] ? "served" : "");
    return 0;
}
"""

# Serves itself from a table, as programs with an allocator inside do.
OWN = r"""
#include <stddef.h>
#include <stdio.h>
static char room[1 << 20];
static size_t used;
void *malloc(size_t n)
{
    char *p = room + used;
    used += (n + 31) / 16 * 16;
    return used < sizeof room ? p : NULL;
}
void free(void *p) { (void)p; }
void *calloc(size_t count, size_t n) { return malloc(count * n); }
void *realloc(void *p, size_t n) { (void)p; return malloc(n); }
int main(void) { return !malloc(100) || puts("served") < 0; }
"""

# Passes calls on, which is no allocator of its own.
PASSES_ON = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
void *malloc(size_t n)
{
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc");
    return next(n);
}
int main(void) { return !malloc(100) || puts("served") < 0; }
"""

# The table of such a program has the address of an entry that jumps to malloc.
ADDRESS = r"""
#include <stdio.h>
#include <stdlib.h>
void *(*volatile take)(size_t) = malloc;
int main(void) { return !take(100) || puts("served") < 0; }
"""

PROTECT = ("limit=64M", "check=report", "check=abort", "guard=100", "canary=on", "quarantine=on", "trace=16")


class Aside(Case):
    def build(self, text, *options):
        self.need("gcc")
        program = self.path("program")
        source = self.path("program.c", text)
        made = subprocess.run(["gcc", "-fno-builtin", *options, source, "-o", program], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest("gcc builds no such program: " + made.stderr[-200:])
        return program

    def check_aside(self, program, whose, **env):
        """Runs as without, and says so; is not started where something was asked for that would not hold."""
        line = f"hakmem: HAKMEM: {whose}, which the shim does not replace: "
        for settings in ("", "trim=1", "live=on", f"learn={self.path('l')}", "rate=64K,profile=" + self.path("p")):
            done = self.start([program], settings, **env)
            self.assertEqual((done.stdout, done.returncode), ("served\n", 0), done.stderr)
            self.assertRegex(done.stderr, rf"\A{line}what the program allocates is not seen\n")
        for settings in PROTECT:
            done = self.start([program], settings, **env)
            self.assertEqual((done.stdout, done.returncode), ("", 2))
            self.assertRegex(done.stderr, rf"\A{line}a limit or a check would not hold; the program is not started\n\Z")

    def test_sanitizers_of_gcc(self):
        whose = "the program was built with a sanitizer, and has the sanitizer's malloc"
        for kind in ("address", "thread", "leak"):
            with self.subTest(kind=kind):
                program = self.build(PROGRAM, f"-fsanitize={kind}")
                self.check_aside(program, whose, ASAN_OPTIONS="verify_asan_link_order=0")

    def test_a_sanitizer_still_finds_what_it_is_for(self):
        program = self.build(PROGRAM, "-fsanitize=address")
        done = self.start([program, "beside"], "", ASAN_OPTIONS="verify_asan_link_order=0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("heap-buffer-overflow", done.stderr)

    def test_a_program_with_an_allocator_inside(self):
        program = self.build(OWN)
        self.check_aside(program, f"the program has the malloc of {program}")

    def test_another_library_that_is_preloaded_before(self):
        self.need("gcc")
        other = os.path.join(self.dir, "other.so")
        source = self.path("other.c", OWN.replace("int main", "int unused"))
        made = subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", other], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        program = self.build('#include <stdio.h>\nint main(void) { return puts("served") < 0; }\n')
        self.check_aside(program, f"the program has the malloc of {other}", LD_PRELOAD=f"{other}:{SHIM}")

    def test_an_allocator_inside_under_other_names(self):
        text = '#include <stdio.h>\nint main(int n, char **a) { (void)a; return puts(n > 1 ? "%s" : "served") < 0; }\n'
        for name, said in (("jemalloc", "<jemalloc>: Error"), ("mimalloc", "mimalloc: error"), (None, "jemalloc: mi")):
            program = self.build(text % said, "-s")
            line = f"hakmem: HAKMEM: the program has {name} inside: what that gives is neither limited nor checked\n"
            for settings in PROTECT:
                done = self.start([program], settings)
                self.assertEqual((done.stdout, done.returncode), ("served\n", 0))
                self.assertEqual(done.stderr, line if name else "")
            self.assertEqual(self.start([program], "mode=fast").stderr, "")

    def test_the_mimalloc_of_cpython(self):
        """It is in every CPython from 3.13 on, and hardly one takes it."""
        text = """
            #include <stdio.h>
            const char *Py_GetVersion(void) { return "mimalloc: error"; }
            %s
            int main(void) { return puts("served") < 0; }
        """
        line = "hakmem: HAKMEM: the program has mimalloc inside: what that gives is neither limited nor checked\n"
        for more, python, said in (
            ("", {}, ""),
            ("", {"PYTHONMALLOC": "malloc"}, ""),
            ("", {"PYTHONMALLOC": "mimalloc_debug"}, line),
            ("int PyUnstable_Module_SetGIL(void) { return 0; }", {}, line),
        ):
            program = self.build(text % more, "-rdynamic")
            with self.subTest(more=more, python=python):
                done = self.start([program], "limit=64M", **python)
                self.assertEqual((done.stdout, done.stderr, done.returncode), ("served\n", said, 0))

    def test_programs_that_the_shim_serves(self):
        for text, options in ((PASSES_ON, ()), (ADDRESS, ("-no-pie", "-fno-pic")), (PROGRAM, ("-fsanitize=undefined",))):
            program = self.build(text, *options)
            done = self.start([program], "report=stderr,limit=64M")
            self.assertEqual((done.stdout, done.returncode), ("served\n", 0))
            [report] = reports(done.stderr)
            self.assertGreater(report["peak live"], 0)


if __name__ == "__main__":
    main()
