"""Where hakmem may go in, where it must not, and what the allocator promises to CPython."""

import json
import subprocess
import unittest

from support import (
    FREE_THREADED,
    OBJ,
    ProgramCase,
    compiler,
    needs_module,
    needs_objects,
    plain_environment,
    preloaded,
)

WORK = "x = [{'a': i, 'b': str(i)} for i in range(20000)]; del x\n"


class Early(ProgramCase):
    def test_domains(self):
        code = "import hakmem, json; print(json.dumps(hakmem.status()))"
        status = self.run_code(code, all_domains=True)
        self.assertEqual((status["raw"], status["mem"]), ("replaced", "replaced"))
        self.assertEqual(status["obj"], OBJ)
        self.assertTrue(status["early"])
        status = self.run_code(code, all_domains=False)
        self.assertEqual((status["raw"], status["mem"], status["obj"]), ("replaced", "default", "default"))
        self.assertEqual(status["arena"], "replaced")

    @needs_objects
    def test_nothing_of_python_is_outside(self):
        """RAW and arenas cover what pymalloc takes, all domains what Python takes."""
        for all_domains, factor in ((True, 1.0), (False, 1.0)):
            found = self.run_code(
                """
                import hakmem, json
                before = hakmem.stats()["live_bytes"]
                keep = [bytes(100) for i in range(200_000)]
                print(json.dumps(hakmem.stats()["live_bytes"] - before))
                """,
                all_domains=all_domains,
            )
            self.assertGreater(found, factor * 200_000 * 144 - (1 << 20))
            self.assertLess(found, 1.15 * 200_000 * (144 + 8) + (2 << 20))

    def test_the_collector_finds_cycles(self):
        found = self.run_code("""
            import gc, json
            class Node: pass
            gc.collect()
            gc.disable()
            for i in range(1000):
                a, b = Node(), Node()
                a.other, b.other = b, a
            print(json.dumps([gc.collect() >= 1990, len(gc.get_objects()) > 1000]))
        """)
        self.assertEqual(found, [True, True])

    def test_tracemalloc_on_top(self):
        found = self.run_code(f"""
            import json, tracemalloc, hakmem
            {WORK.strip()}
            states = []
            for i in range(3):
                tracemalloc.start(5)
                {WORK.strip()}
                states.append([hakmem.status()[d] for d in ("raw", "mem", "obj")])
                holder = hakmem.status()["holder"]
                tracemalloc.stop()
                {WORK.strip()}
            print(json.dumps([states, sorted(holder), hakmem.status()["raw"]]))
        """)
        self.assertEqual(found[0], [["covered"] * 3] * 3)
        self.assertEqual(found[1:], [["mem", "obj", "raw"], "replaced"])

    def test_again_below_tracemalloc_is_nothing_new(self):
        """Blocks of others still go back to them, not round and round between tracemalloc and hakmem."""
        found = self.run_code("""
            import ctypes, json, tracemalloc, hakmem
            libc, api = ctypes.CDLL(None), ctypes.pythonapi
            libc.malloc.restype = ctypes.c_void_p
            api.PyMem_RawFree.argtypes = [ctypes.c_void_p]
            tracemalloc.start()
            states = []
            for mode in ("auto", "wrap", "replace"):
                status = hakmem.install("all", mode=mode)
                states.append([status[d] for d in ("raw", "mem", "obj")])
                api.PyMem_RawFree(libc.malloc(100))
            tracemalloc.stop()
            api.PyMem_RawFree(libc.malloc(100))
            print(json.dumps([states, [hakmem.status()[d] for d in ("raw", "mem", "obj")]]))
        """)
        self.assertEqual(found, [[["covered"] * 3] * 3, ["replaced", "replaced", OBJ]])

    def test_again_when_others_put_back_what_they_found(self):
        """A profile has hooks of its own. tracemalloc knows those that were there before it began."""
        found = self.run_code(f"""
            import ctypes, json, tracemalloc, hakmem, hakmem.profile
            libc, api = ctypes.CDLL(None), ctypes.pythonapi
            libc.malloc.restype = ctypes.c_void_p
            api.PyMem_RawFree.argtypes = [ctypes.c_void_p]
            states = []
            def now():
                states.append([hakmem.status()[d] for d in ("raw", "mem", "obj")])
                {WORK.strip()}
                api.PyMem_RawFree(libc.malloc(100))
            tracemalloc.start()
            hakmem.profile.start()
            tracemalloc.stop()
            now()
            hakmem.install("all", mode="auto")
            now()
            tracemalloc.start()
            hakmem.profile.stop()
            tracemalloc.stop()
            hakmem.install("all")
            now()
            print(json.dumps([states, hakmem.status()["holder"]]))
        """)
        self.assertEqual(found, [[["replaced", "replaced", OBJ]] * 3, {}])

    @needs_module("memray")
    def test_memray_on_top(self):
        found = self.run_code(f"""
            import json, memray, hakmem
            with memray.Tracker("out.bin", trace_python_allocators=True):
                {WORK.strip()}
            print(json.dumps(hakmem.status()["obj"]))
        """)
        self.assertEqual(found, OBJ)

    def test_displaced_is_said(self):
        code = "import hakmem, json; print(json.dumps(hakmem.status()))"
        for variable in (
            {"PYTHONMALLOC": "default"},
            {"PYTHONMALLOC": "mimalloc" if FREE_THREADED else "malloc"},
            {"PYTHONMALLOC": "debug"},
            {"PYTHONDEVMODE": "1"},
        ):
            status = self.run_code(code, env=preloaded(all_domains=True) | variable)
            self.assertEqual([status[d] for d in ("raw", "mem", "obj")], ["displaced"] * 3, variable)
            self.assertIn("python", status["holder"]["obj"])


@unittest.skipUnless(FREE_THREADED, "a build with the GIL")
class LateWithoutTheGil(ProgramCase):
    """Other threads would take a block from the new allocator and free it by the old one."""

    def test_refused_or_wrapped(self):
        found = self.run_code(
            f"""
            import hakmem, json
            refused = []
            for domains in ("raw", "all"):
                try:
                    hakmem.install(domains)
                except RuntimeError as error:
                    refused.append(str(error))
            states = [hakmem.status()[d] for d in ("raw", "mem", "obj")]
            wrapped = hakmem.install("all", mode="auto")
            {WORK.strip()}
            print(json.dumps([refused, states, [wrapped[d] for d in ("raw", "mem", "obj")]]))
            """,
            env=plain_environment(),
        )
        self.assertEqual(len(found[0]), 2)
        self.assertIn("free-threaded", found[0][0])
        self.assertEqual(found[1:], [["default"] * 3, ["wrapped"] * 3])

    def test_again_is_nothing_new(self):
        found = self.run_code(
            "import hakmem, json; print(json.dumps(hakmem.install('all') == hakmem.status()))"
        )
        self.assertTrue(found)


@unittest.skipIf(FREE_THREADED, "a free-threaded build refuses it")
class Late(ProgramCase):
    def late(self, code, **options):
        return self.run_code(
            "import hakmem, json\n" + code, env=options.pop("env", None) or {"PATH": "/bin"}, **options
        )

    def run_code(self, text, env, **options):
        import os

        kept = {k: v for k, v in os.environ.items() if k in ("PYTHONPATH", "HOME", "LD_LIBRARY_PATH")}
        return super().run_code(text, env={**kept, **env}, **options)

    def test_replaces_in_a_plain_interpreter(self):
        for domains in ("raw", "all"):
            found = self.late(f"""
import re, collections
before = [str(i) * 3 for i in range(50000)]
status = hakmem.install("{domains}")
{WORK}
after = [str(i) * 3 for i in range(50000)]
assert before == after
before.sort(); del before                 # blocks from before go back to whom they belong
big = bytearray(10); big.extend(bytes(1 << 20)); del big
print(json.dumps([status["raw"], status["obj"], status["early"], hakmem.stats()["live_bytes"] > 1 << 20]))
""")
            self.assertEqual(found, ["replaced", "replaced" if domains == "all" else "default", False, True])

    def test_again_is_nothing_new(self):
        found = self.late("a = hakmem.install('all'); b = hakmem.install('all'); print(json.dumps(a == b))")
        self.assertTrue(found)
        found = self.late("hakmem.install('raw'); print(json.dumps(hakmem.install('all')['obj']))")
        self.assertEqual(found, "replaced")

    def test_again_below_tracemalloc_is_nothing_new(self):
        found = self.late(f"""
import tracemalloc
before = [str(i) * 3 for i in range(50000)]
hakmem.install("all")
tracemalloc.start()
states = []
for mode in ("auto", "replace"):
    states.append(hakmem.install("all", mode=mode)["obj"])
    del before[:20000]                    # blocks from before go back to whom they belong
    {WORK}
tracemalloc.stop()
del before
print(json.dumps([states, hakmem.status()["obj"]]))
""")
        self.assertEqual(found, [["covered"] * 2, "replaced"])

    @unittest.skipUnless(compiler(), "no C compiler")
    def test_again_below_other_arenas_is_nothing_new(self):
        source, library = self.folder / "cover.c", self.folder / "cover.so"
        source.write_text("""
#include <stddef.h>
typedef struct { void *ctx, *(*alloc)(void *, size_t); void (*free)(void *, void *, size_t); } arenas;
void PyObject_GetArenaAllocator(arenas *), PyObject_SetArenaAllocator(arenas *);
static arenas below;
static void *take(void *ctx, size_t n) { (void)ctx; return below.alloc(below.ctx, n); }
static void give(void *ctx, void *p, size_t n) { (void)ctx; below.free(below.ctx, p, n); }
void cover(void) {
    arenas on_top = {NULL, take, give};
    PyObject_GetArenaAllocator(&below);
    PyObject_SetArenaAllocator(&on_top);
}
void uncover(void) { PyObject_SetArenaAllocator(&below); }
""")
        subprocess.run([compiler(), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        found = self.late(f"""
import ctypes
before = [bytes(i % 400) for i in range(200000)]
hakmem.install("raw")
foreign = ctypes.PyDLL({json.dumps(str(library))})
foreign.cover()
states = [hakmem.install("raw", mode=mode)["arena"] for mode in ("auto", "replace")]
del before                                # arenas from before go back to whom they belong
after = [bytes(i % 400) for i in range(200000)]
del after
foreign.uncover()
print(json.dumps([states, hakmem.status()["arena"]]))
""")
        self.assertEqual(found, [["covered"] * 2, "replaced"])

    def test_refused_while_tracemalloc_is_active(self):
        found = self.late(f"""
import tracemalloc
tracemalloc.start()
try:
    hakmem.install("all")
    why = None
except RuntimeError as error:
    why = str(error)
states = [hakmem.status()[d] for d in ("raw", "mem", "obj")]
wrapped = hakmem.install("all", mode="auto")["obj"]
{WORK}
tracemalloc.stop()
{WORK}
print(json.dumps([why, states, wrapped]))
""")
        self.assertIn("tracemalloc", found[0])
        self.assertEqual(found[1:], [["default"] * 3, "wrapped"])

    def test_refused_with_debug_hooks(self):
        for variable in ({"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}):
            found = self.late(
                """
try:
    print(json.dumps(hakmem.install("all")))
except RuntimeError as error:
    print(json.dumps(str(error)))
""",
                env=variable,
            )
            self.assertIn("debug", found)

    def test_python_malloc_below(self):
        found = self.late(
            f"print(json.dumps(hakmem.install('all')['obj']));{WORK}", env={"PYTHONMALLOC": "malloc"}
        )
        self.assertEqual(found, "replaced")

    def test_wrapping_counts_the_outermost_call(self):
        found = self.late("""
import itertools
hakmem.install("all", mode="wrap")
before = hakmem.take_snapshot().parts["wrapped"]
keep = [bytes(2000) for i in itertools.repeat(0, 20_000)]   # pymalloc passes these on to RAW
after = hakmem.take_snapshot().parts["wrapped"]
print(json.dumps([after[d]["allocations"] - before[d]["allocations"] for d in ("obj", "raw")]))
""")
        self.assertGreaterEqual(found[0], 20_000)
        self.assertLess(found[0], 22_000)
        self.assertLess(found[1], 1000)

    def test_values_that_are_none(self):
        found = self.late("""
bad = []
for options in ({"domains": "x"}, {"mode": "x"}, {"labels": "x"}):
    try:
        hakmem.install(**options)
    except (ValueError, RuntimeError) as error:
        bad.append(str(error))
print(json.dumps([len(bad), hakmem.status()["installed"]]))
""")
        self.assertEqual(found, [3, False])

    def test_threads_meanwhile(self):
        found = self.late(f"""
import threading
stop = False
def work():
    while not stop:
        {WORK}
threads = [threading.Thread(target=work) for i in range(3)]
for t in threads: t.start()
{WORK}
hakmem.install("all")
for i in range(5):
    {WORK}
stop = True
for t in threads: t.join()
print(json.dumps(hakmem.status()["obj"]))
""")
        self.assertEqual(found, "replaced")


class Promises(ProgramCase):
    """What CPython asks of an allocator, by its C functions."""

    def test_of_each_domain(self):
        found = self.run_code(f"""
            import ctypes, json
            api = ctypes.pythonapi
            bad = []
            mimalloc = {FREE_THREADED} and "PyObject_"
            def even(p, n, domain):          # mimalloc has blocks of 8 bytes
                return p % (8 if n <= 8 and domain == mimalloc else 16) == 0
            for domain in ("PyMem_Raw", "PyMem_", "PyObject_"):
                malloc, calloc, realloc, free = (getattr(api, domain + n) for n in ("Malloc", "Calloc", "Realloc", "Free"))
                malloc.restype = calloc.restype = realloc.restype = ctypes.c_void_p
                malloc.argtypes = [ctypes.c_size_t]
                calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
                realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
                free.argtypes = [ctypes.c_void_p]
                empty = [malloc(0) for i in range(100)] + [calloc(0, 8) for i in range(100)]
                if None in empty or len(set(empty)) != 200: bad.append((domain, "size 0"))
                for p in empty: free(p)
                free(None)
                for n in list(range(1, 600)) + [4095, 4096, 32768, 32769, 1 << 20, (1 << 20) + 1, 5 << 20]:
                    p = malloc(n)
                    if not even(p, n, domain): bad.append((domain, "alignment", n))
                    ctypes.memset(p, 0x5A, n)
                    q = realloc(p, 2 * n)
                    if not even(q, 2 * n, domain) or ctypes.string_at(q, n) != b"\\x5a" * n: bad.append((domain, "realloc", n))
                    q = realloc(q, n)
                    if ctypes.string_at(q, n) != b"\\x5a" * n: bad.append((domain, "shrink", n))
                    q = realloc(q, 0)
                    if not q: bad.append((domain, "realloc to 0", n))
                    free(q)
                    z = calloc(n, 3)
                    if ctypes.string_at(z, 3 * n).strip(b"\\0"): bad.append((domain, "calloc", n))
                    free(z)
                p = realloc(None, 100)
                if not p: bad.append((domain, "realloc of NULL"))
                if realloc(p, 1 << 62) or malloc(1 << 62) or calloc(1 << 40, 1 << 40): bad.append((domain, "too much"))
                ctypes.memset(p, 1, 100)
                free(p)
            print(json.dumps(bad))
        """)
        self.assertEqual(found, [])

    def test_blocks_of_another_allocator_go_back_to_it(self):
        """A block of libc's malloc, which RAW would have used."""
        found = self.run_code("""
            import ctypes, json
            libc, api = ctypes.CDLL(None), ctypes.pythonapi
            libc.malloc.restype = api.PyMem_RawRealloc.restype = ctypes.c_void_p
            api.PyMem_RawRealloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
            api.PyMem_RawFree.argtypes = [ctypes.c_void_p]
            for n in (10, 1000, 100_000, 10_000_000):
                p = libc.malloc(n)
                ctypes.memset(p, 7, n)
                p = api.PyMem_RawRealloc(p, n * 2)
                assert ctypes.string_at(p, n) == bytes([7]) * n
                api.PyMem_RawFree(p)
            print(json.dumps("fine"))
        """)
        self.assertEqual(found, "fine")


if __name__ == "__main__":
    unittest.main()
