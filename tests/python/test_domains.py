"""What each domain has, counted while blocks have no labels, and labels that come later."""

import unittest

from support import FREE_THREADED, ProgramCase, needs_objects

# Blocks of each domain by CPython's own functions, and what hakmem says of it before and after.
HEAD = """
import ctypes, hakmem, json, os, threading
api = ctypes.pythonapi
class Domain:
    def __init__(self, name, prefix):
        self.name = name
        self.malloc, self.calloc, self.realloc, self.free = (
            getattr(api, prefix + f) for f in ("Malloc", "Calloc", "Realloc", "Free"))
        for f in (self.malloc, self.calloc, self.realloc): f.restype = ctypes.c_void_p
        self.malloc.argtypes = [ctypes.c_size_t]
        self.calloc.argtypes = [ctypes.c_size_t] * 2
        self.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.free.argtypes, self.free.restype = [ctypes.c_void_p], None
raw, mem, obj = Domain("raw", "PyMem_Raw"), Domain("mem", "PyMem_"), Domain("obj", "PyObject_")
SIZES = [10, 100, 500, 600, 1000, 5000, 48_000, 200_000, 1_500_000]
def amount(domain):
    return hakmem.labels().get(domain.name, (0, 0))
class Growth:
    "of a domain, beside what the program itself has meanwhile"
    def __init__(self, domain):
        self.domain, self.bytes, self.blocks = domain, *amount(domain)
    def near(self, size, blocks):
        b, n = amount(self.domain)
        if abs(n - self.blocks - blocks) > 150: return False
        return 0.94 * size - 20_000 < b - self.bytes < 1.26 * size + 20_000
def in_thread(f):
    t = threading.Thread(target=f)
    t.start(); t.join()
def steps(domain, count):
    "Makes, resizes and frees blocks of all sizes; the steps after which hakmem says something else."
    wrong = []
    def check(step, growth, size, blocks):
        if not growth.near(size, blocks): wrong.append([domain.name, step, size, amount(domain), growth.bytes])
    for size in SIZES:
        n = max(1, min(count, 3_000_000 // size))
        made = (ctypes.c_void_p * n)()
        g = Growth(domain)
        for i in range(n): made[i] = domain.malloc(size) if i % 2 else domain.calloc(1, size)
        check("malloc", g, n * size, n)
        for i in range(n): made[i] = domain.realloc(made[i], 3 * size)
        check("grown", g, n * 3 * size, n)
        def shrink():
            for i in range(n): made[i] = domain.realloc(made[i], size)
        in_thread(shrink)
        check("shrunk elsewhere", g, n * size, n)
        for i in range(n // 2): domain.free(made[i])
        def rest():
            for i in range(n // 2, n): domain.free(made[i])
        in_thread(rest)
        check("freed", g, 0, 0)
    return wrong
"""


class Domains(ProgramCase):
    def run_domains(self, text, **options):
        import textwrap

        return self.run_code(HEAD + textwrap.dedent(text), **options)

    @needs_objects
    def test_each_domain_in_all_ways(self):
        self.assertEqual(
            self.run_domains("print(json.dumps([w for d in (raw, mem, obj) for w in steps(d, 600)]))"), []
        )

    def test_raw_and_arenas(self):
        found = self.run_domains(
            """
            keep = [bytes(300) for i in range(20_000)]
            arenas = hakmem.labels()["arena"]
            wrong = steps(raw, 600)
            print(json.dumps([wrong, arenas, "obj" in hakmem.labels(), "mem" in hakmem.labels()]))
            """,
            all_domains=False,
        )
        self.assertEqual(found[0], [])
        if not FREE_THREADED:
            self.assertGreater(found[1][0], 20_000 * 300)
        # What is not RAW is an arena: exactly nothing is left over.
        self.assertEqual(found[2:], [False, False])

    def test_threads_at_once(self):
        found = self.run_domains("""
            g = [Growth(d) for d in (raw, mem)]
            def work():
                for k in range(20):
                    made = [[d.malloc(s) for s in SIZES[:5] for i in range(20)] for d in (raw, mem)]
                    for d, blocks in zip((raw, mem), made):
                        for i, p in enumerate(blocks): blocks[i] = d.realloc(p, 700)
                        for p in blocks: d.free(p)
            threads = [threading.Thread(target=work) for i in range(8)]
            [t.start() for t in threads]; [t.join() for t in threads]
            print(json.dumps([x.near(0, 0) for x in g]))
        """)
        self.assertEqual(found, [True, True])

    def test_a_child_goes_on_counting(self):
        found = self.run_domains("""
            g = Growth(raw)
            made = [raw.malloc(1000) for i in range(1000)]
            stop = threading.Event()
            t = threading.Thread(target=stop.wait); t.start()
            here, there = os.pipe()
            if os.fork() == 0:
                before = g.near(1_000_000, 1000)
                for p in made[500:]: raw.free(p)
                in_thread(lambda: [raw.free(p) for p in made[:500]])
                os.write(there, json.dumps([before, g.near(0, 0)]).encode())
                os._exit(0)
            os.wait(); stop.set()
            print(json.dumps([json.loads(os.read(here, 1000)), g.near(1_000_000, 1000)]))
        """)
        self.assertEqual(found, [[True, True], True])

    @needs_objects
    def test_blocks_from_before_there_were_labels(self):
        found = self.run_domains("""
            domains, n, size = (raw, mem, obj), 2000, 400
            made, kept = [(ctypes.c_void_p * n)() for d in domains], (ctypes.c_void_p * 100)()
            before = [Growth(d) for d in domains]
            for d, blocks in zip(domains, made):
                for i in range(n): blocks[i] = d.malloc(size)
            grown = [g.near(n * size, n) for g in before]
            with hakmem.label("scope"):
                for i in range(100): kept[i] = mem.malloc(size)
                # A block keeps the label that it has, and none.
                for d, blocks in zip(domains, made):
                    for i, p in enumerate(blocks): blocks[i] = d.realloc(p, 2 * size)
                    for i, p in enumerate(blocks): blocks[i] = d.realloc(p, 3 * size)
            resized = [g.near(3 * n * size, n) for g in before]
            scope = hakmem.labels()["scope"]
            with hakmem.label("other"):
                for i, p in enumerate(kept): kept[i] = mem.realloc(p, 2 * size)
            scope = [scope, hakmem.labels()["scope"]]
            for d, blocks in zip(domains, made):
                for p in blocks: d.free(p)
            freed = [g.near(0, 0) for g in before]
            after = [w for d in domains for w in steps(d, 600)]
            for p in kept: mem.free(p)
            print(json.dumps([grown, resized, freed, after, scope, hakmem.labels().get("scope", (0, 0))[1]]))
        """)
        grown, resized, freed, after, scope, left = found
        self.assertEqual([grown, resized, freed, after], [[True] * 3, [True] * 3, [True] * 3, []])
        for s in scope:
            self.assertAlmostEqual(s[1] - left, 100, delta=10)
        self.assertGreaterEqual(scope[1][0] - scope[0][0], 100 * 400)

    @needs_objects
    def test_labels_take_no_memory_before_they_are_there(self):
        found = self.run_code("""
            import hakmem, json
            keep = [[i] for i in range(300_000)]
            def share():
                s = hakmem.stats()
                return s["metadata_bytes"] / s["live_bytes"]
            before = share()
            with hakmem.label("first"): pass
            print(json.dumps([before, share()]))
        """)
        # a byte for 16 to 64 bytes of small blocks
        self.assertGreater(found[1] - found[0], 0.012)


if __name__ == "__main__":
    unittest.main()
