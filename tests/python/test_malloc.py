"""--malloc: what C code takes from malloc has labels and lines, to the byte, and nothing else changes."""

import signal
import subprocess
import sys
import time
import unittest

from support import ProgramCase, compiler, needs_objects, preloaded

# How programs here call the malloc of the process: with the GIL, and without it as most C code does.
LIBC = """
    import ctypes, os
    held, plain = ctypes.PyDLL(None, use_errno=True), ctypes.CDLL(None, use_errno=True)
    for library in (held, plain):
        for name in ("malloc", "calloc", "realloc", "aligned_alloc", "__libc_malloc", "reallocarray"):
            getattr(library, name).restype = ctypes.c_void_p
        library.malloc.argtypes = library.__libc_malloc.argtypes = [ctypes.c_size_t]
        library.calloc.argtypes = library.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.reallocarray.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
        library.free.argtypes = library.malloc_usable_size.argtypes = [ctypes.c_void_p]
        library.malloc_usable_size.restype = ctypes.c_size_t
"""
ROWS = """
    import sqlite3
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.execute("create table t (a, b)")
    def fill(n):
        db.executemany("insert into t values (?, ?)", ((i, "x" * 100) for i in range(n)))
"""


def needs_lines(test):
    return unittest.skipIf(sys.version_info >= (3, 14), "no lines in this CPython")(needs_objects(test))


class Malloc(ProgramCase):
    def script(self, text, name="program.py"):
        return super().script("".join(line.removeprefix("    ") for line in text.splitlines(True)), name)

    def report(self, text, labels="off", all_domains=True, **options):
        """The report of a program that ends well."""
        file = self.folder / "r.json"
        env = preloaded(malloc=True, all_domains=all_domains, labels=labels, report=str(file))
        self.python(self.script(text), env=env, **options)
        return self.reports("r.json")[0]

    def sqlite(self, report):
        """Of its library, or of the module where that has it inside."""
        labels = report["labels"]
        return labels.get("ext:libsqlite3", labels.get("ext:_sqlite3"))["live_bytes"]

    def lines(self, report):
        return {s["line"]: s for s in report["sites"] if s["file"].endswith("program.py")}

    def test_it_is_asked_for(self):
        text = LIBC + "keep = held.malloc(3 << 20)"
        for malloc, live in ((False, 0), (True, 3 << 20)):
            file = self.folder / "r.json"
            self.python(self.script(text), env=preloaded(malloc=malloc, report=str(file)))
            report = self.reports("r.json")[0]
            self.assertGreaterEqual(report["labels"].get("malloc", {"live_bytes": 0})["live_bytes"], live)
            self.assertEqual("malloc" in report["labels"], malloc)
            self.assertEqual(report["status"]["malloc"], "replaced" if malloc else "default")

    def test_run_and_env(self):
        code = "import hakmem; print(hakmem.status()['malloc'])"
        run = ("run", "--report", "", "--malloc", "-c", code)
        self.assertEqual(self.hakmem(*run).stdout, "replaced\n")
        exports = self.hakmem("env", "--malloc").stdout
        self.assertRegex(exports, r"LD_PRELOAD=\S*libhakmem_pymalloc.so:\S*libhakmem_pyhook.so")
        # One under the other: the inner one has no malloc.
        inner = f"{sys.executable} -m hakmem run --report '' -c \"{code}\""
        outer = ("run", "--report", "", "--malloc", "-c", f"import os; os.system({inner!r})")
        self.assertEqual(self.hakmem(*outer).stdout, "default\n")

    def test_sums(self):
        for labels in ("off", "native", "site"):
            if labels == "site" and self.without_lines():
                continue
            report = self.report(ROWS + "fill(20000)", labels)
            blocks = sum(label["live_blocks"] for label in report["labels"].values())
            size = sum(label["live_bytes"] for label in report["labels"].values())
            self.assertEqual((size, blocks), (report["stats"]["live_bytes"], report["stats"]["live_blocks"]))

    def without_lines(self):
        return bool(__import__("sysconfig").get_config_var("Py_GIL_DISABLED"))

    @needs_lines
    def test_the_library_and_the_line_that_called(self):
        report = self.report(ROWS + "fill(20000)", "site")
        self.assertGreater(self.sqlite(report), 2 << 20)
        rows = sum(s["live_bytes"] for s in report["sites"] if s["function"] == "fill")
        self.assertGreater(rows, 2 << 20)

    @needs_lines
    def test_lines_to_the_byte_with_the_gil_and_without(self):
        text = LIBC + """
    keep = []
    for library in (held, plain):
        for n in (1, 24, 500, 513, 5000, 70000, 3 << 20):
            keep.append(library.malloc(n))  # malloc
            keep.append(library.calloc(3, n))  # calloc
            keep.append(library.aligned_alloc(256, n))  # aligned
            p = library.malloc(n)
            keep.append(library.realloc(p, n + 7))  # realloc
            keep.append(library.reallocarray(None, 2, n))  # array
            assert library.malloc_usable_size(keep[-1]) == 2 * n
            ctypes.memset(keep[-1], 255, 2 * n)
            gone = library.malloc(n)  # gone
            library.free(gone)
    assert all(p % 16 == 0 for p in keep) and keep[2] % 256 == 0
"""
        lines = text.splitlines()
        found = self.lines(self.report(text, "site"))
        sizes = (1, 24, 500, 513, 5000, 70000, 3 << 20)
        for name, factor, more in (("malloc", 1, 0), ("calloc", 3, 0), ("aligned", 1, 0), ("array", 2, 0)):
            line = next(i for i, text in enumerate(lines, 1) if text.endswith("# " + name))
            wanted = 2 * sum(factor * n + more for n in sizes)
            # The list grows on these lines too.
            self.assertLess(found[line]["asked_bytes"] - wanted, 4000, name)
            self.assertGreaterEqual(found[line]["asked_bytes"], wanted, name)
        gone = next(i for i, text in enumerate(lines, 1) if text.endswith("# gone"))
        self.assertLess(found.get(gone, {"asked_bytes": 0})["asked_bytes"], 1000)

    def test_blocks_of_libc_itself(self):
        """Not from hakmem, and freed, resized and measured by libc."""
        for labels in ("off", "native"):
            env = preloaded(malloc=True, all_domains=True, labels=labels)
            text = LIBC + """
    held.free(held.__libc_malloc(1000))
    p = held.realloc(held.__libc_malloc(1000), 100000)
    assert held.malloc_usable_size(p) >= 100000
    held.free(p)
    held.free(None)
    """
            self.python(self.script(text), env=env)

    def test_no_memory(self):
        text = LIBC + """
    import errno
    for library in (held, plain):
        p = library.malloc(100)
        for attempt in (lambda: library.malloc(1 << 62), lambda: library.malloc((1 << 64) - 1),
                        lambda: library.calloc(1 << 33, 1 << 33), lambda: library.realloc(p, (1 << 64) - 1),
                        lambda: library.aligned_alloc(64, 1 << 63), lambda: library.calloc(1, 1 << 40)):
            ctypes.set_errno(0)
            assert attempt() is None
            assert ctypes.get_errno() == errno.ENOMEM
        library.free(p)
    """
        env = preloaded(malloc=True, all_domains=True, limit=64 << 20)
        self.python(self.script(text), env=env)

    def test_what_is_mapped_and_not_touched_is_no_reason_to_refuse(self):
        for call in ("malloc(20 << 20)", "calloc(1, 20 << 20)", "realloc(small, 20 << 20)", "aligned_alloc(64, 20 << 20)"):
            text = LIBC + f"""
    import mmap
    small = plain.malloc(100)
    wide = mmap.mmap(-1, 30 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    p = plain.{call}
    assert p
    ctypes.memset(p, 1, 20 << 20)
    """
            with self.subTest(call):
                self.python(self.script(text), env=preloaded(malloc=True, all_domains=True, limit=45 << 20))

    def test_free_keeps_errno(self):
        text = LIBC + """
    blocks = [held.malloc(n) for n in (10, 1000, 100000, 50 << 20)]
    for p in blocks:
        ctypes.memset(p, 1, 10)
        ctypes.set_errno(77)
        held.free(p)
        assert ctypes.get_errno() == 77
    """
        self.python(self.script(text), env=preloaded(malloc=True))

    def test_threads_fork_and_children_of_other_kinds(self):
        text = LIBC + ROWS + """
    import multiprocessing, subprocess, sys, threading
    stop = threading.Event()
    def work():
        mine = sqlite3.connect(":memory:")
        mine.execute("create table t (a)")
        while not stop.is_set():
            mine.executemany("insert into t values (?)", [("y" * 50,)] * 200)
            mine.execute("delete from t")
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(30):
        pid = os.fork()
        if pid == 0:
            # Not sqlite, of which a lock may be held for ever here.
            for n in range(300):
                plain.free(plain.realloc(plain.malloc(n * 50), n * 100))
            os._exit(7)
        assert os.waitpid(pid, 0)[1] == 7 << 8
    assert subprocess.run(["sh", "-c", "echo $(ls / | sort)"], capture_output=True).stdout.strip()
    stop.set()
    for thread in threads:
        thread.join()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(len, ["abc"] * 20) == [3] * 20
    for i in range(200):
        thread = threading.Thread(target=fill, args=(5,))
        thread.start()
        thread.join()
    """
        for labels in ("off", "native", *(() if self.without_lines() else ("site",))):
            self.report(text, labels)

    def test_daemon_threads_at_the_end(self):
        """Threads of which Python has dropped the state still allocate without the GIL."""
        text = LIBC + """
    import threading, time
    def work():
        sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        while True:
            p = plain.malloc(3000)
            plain.usleep(10)
            plain.free(p)
    for i in range(4):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.05)
    """
        for _ in range(10):
            self.report(text, "native" if self.without_lines() else "site")

    def test_signals_in_the_middle(self):
        text = ROWS + """
    import signal
    seen = []
    signal.signal(signal.SIGALRM, lambda *a: seen.append(bytes(1000)))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while len(seen) < 50:
        fill(100)
    signal.setitimer(signal.ITIMER_REAL, 0)
    """
        self.report(text, "native")

    def test_a_signal_that_ends_it_brings_a_report(self):
        file = self.folder / "r.json"
        env = preloaded(malloc=True, all_domains=True, labels="native", report=str(file))
        text = ROWS + """
    print("ready", flush=True)
    while True:
        fill(1000)
        db.execute("delete from t")
    """
        with subprocess.Popen([sys.executable, self.script(text)], env=env, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            time.sleep(0.05)
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.wait(60), -signal.SIGTERM)
        self.assertGreater(self.sqlite(self.reports("r.json")[0]), 10000)

    @unittest.skipUnless(compiler(), "no C compiler")
    def test_a_library_with_its_own_search_order_and_threads_without_python(self):
        source, library = self.folder / "deep.c", self.folder / "deep.so"
        source.write_text("""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
void *make(size_t n) { return memset(malloc(n), 1, n); }
void drop(void *p) { free(p); }
static void *run(void *end) {
    for (int i = 0; i < 10000; i++) free(malloc(i % 3000));
    (void)end;
    return strdup("by a thread that has ended");
}
void *in_thread(void) {
    pthread_t t; void *p;
    pthread_create(&t, NULL, run, NULL);
    pthread_join(t, &p);
    return p;
}
""")
        subprocess.run([compiler(), "-shared", "-fPIC", "-O1", "-o", library, source, "-lpthread"], check=True)
        text = LIBC + """
    import sys
    deep = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
    deep.make.restype = deep.in_thread.restype = ctypes.c_void_p
    deep.drop.argtypes = [ctypes.c_void_p]
    held.free(deep.make(1000))
    deep.drop(held.malloc(1000))
    for i in range(50):
        p = deep.in_thread()
        assert ctypes.string_at(p) == b"by a thread that has ended"
        held.free(p)
    keep = deep.make(300000)
    """
        file = self.folder / "r.json"
        env = preloaded(malloc=True, all_domains=True, labels="native", report=str(file))
        self.python(self.script(text), str(library), env=env)
        self.assertGreaterEqual(self.reports("r.json")[0]["labels"]["ext:deep"]["live_bytes"], 300000)

    def test_trim(self):
        text = LIBC + """
    blocks = [held.malloc(3000) for i in range(10000)]
    for p in blocks:
        ctypes.memset(p, 1, 3000)
    keep = held.malloc(3000)
    for p in blocks:
        held.free(p)
    import hakmem
    held.malloc_trim(0)
    assert hakmem.stats()["retained_bytes"] + hakmem.stats()["cached_bytes"] < 4 << 20, hakmem.stats()
    """
        self.python(self.script(text), env=preloaded(malloc=True))


if __name__ == "__main__":
    unittest.main()
