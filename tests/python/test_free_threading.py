"""What holds in a free-threaded CPython, where objects are in its own heap and RAW and MEM in that of hakmem."""

import sys
import unittest

from support import FREE_THREADED, ProgramCase

# Items of lists are of MEM.
MAKE = "[[0] * 125 for i in range({})]"


class Accounts(ProgramCase):
    def test_only_objects_are_outside(self):
        found = self.run_code(f"""
            import hakmem, json, sys
            def live(): return hakmem.labels()["mem"][0]
            before = live()
            keep = {MAKE.format(10_000)}
            made = live() - before
            del keep
            objects = [bytes(1000) for i in range(10_000)]
            print(json.dumps([made, live() - before, hakmem.status()["why"], sys._is_gil_enabled()]))
        """)
        self.assertGreaterEqual(found[0], 10_000 * 1000)
        self.assertLess(found[0], 10_000 * 1024 + 300_000)
        self.assertLess(found[1], 300_000)
        self.assertIn("its own heap", found[2])
        self.assertFalse(found[3], "the extension module does without the GIL")

    def test_objects_are_counted(self):
        found = self.run_code("""
            import hakmem, itertools, json
            def count(): return hakmem.take_snapshot().parts["wrapped"]["obj"]["allocations"]
            before = count()
            keep = [bytes(1000) for i in itertools.repeat(0, 10_000)]
            print(json.dumps(count() - before))
        """)
        self.assertGreaterEqual(found, 10_000)
        self.assertLess(found, 11_000)

    def test_names_and_sums(self):
        found = self.run_code(f"""
            import hakmem, json
            with hakmem.label("mine"):
                keep = {MAKE.format(1000)}
            report = hakmem.take_snapshot().parts
            sums = [sum(l[k] for l in report["labels"].values()) for k in ("live_bytes", "live_blocks")]
            live = [report["stats"][k] for k in ("live_bytes", "live_blocks")]
            print(json.dumps([hakmem.labels()["mine"], sums == live]))
        """)
        self.assertGreaterEqual(found[0][0], 1_000_000)
        self.assertGreaterEqual(found[0][1], 1000)
        self.assertTrue(found[1])


class Limits(ProgramCase):
    def test_a_memory_error_that_the_program_survives(self):
        found = self.run_code("""
            import hakmem, json
            hakmem.limit(60 << 20)
            caught = most = 0
            for i in range(5):
                keep = []
                try:
                    for j in range(10 ** 6): keep.append([0] * 1250)
                except MemoryError:
                    caught += 1
                most = max(most, hakmem.stats()["committed_bytes"])
                keep = None
            print(json.dumps([caught, most / (60 << 20)]))
        """)
        self.assertEqual(found[0], 5)
        self.assertGreater(found[1], 0.95)
        self.assertLessEqual(found[1], 1)

    def test_the_soft_limit_calls_the_program(self):
        found = self.run_code("""
            import hakmem, json, threading
            calls = []
            def callback(): calls.append(threading.current_thread() is threading.main_thread())
            hakmem.limit(200 << 20, soft=50 << 20, soft_callback=callback)
            keep = [[0] * 1250 for i in range(10_000)]
            print(json.dumps([len(calls) >= 1, all(calls)]))
        """)
        self.assertEqual(found, [True, True])

    def test_trim_after_a_burst(self):
        found = self.run_code(f"""
            import gc, hakmem, json
            keep = {MAKE.format(50_000)}
            high = hakmem.stats()["committed_bytes"]
            keep = keep[::1000]
            gc.collect()
            returned = hakmem.trim()
            print(json.dumps([high, returned, hakmem.stats()["committed_bytes"]]))
        """)
        self.assertGreater(found[0], 50_000 * 1000)
        self.assertGreater(found[1], 1 << 20)
        self.assertLess(found[2], 8 << 20)


class Threads(ProgramCase):
    def test_lists_that_other_threads_resize_and_drop(self):
        found = self.run_code(
            """
            import gc, hakmem, json, threading
            slots = [None] * 64
            def work(seed):
                x = seed
                for i in range(30_000):
                    x = (x * 1103515245 + 12345) % (1 << 31)
                    mine, slots[x % 64] = slots[x % 64], [seed] * (x // 64 % 400)
                    if mine is not None:
                        mine.extend(range(x // 64 % 100))
                        if mine.count(mine[0] if mine else 0) < 0: raise AssertionError
            def round():
                threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
                for t in threads: t.start()
                for t in threads: t.join()
                slots[:] = [None] * 64
                gc.collect()
                report = hakmem.take_snapshot().parts
                assert sum(l["live_bytes"] for l in report["labels"].values()) == report["stats"]["live_bytes"]
                return report["stats"]["live_bytes"]
            round()
            first = round()
            print(json.dumps(round() - first))
        """,
            timeout=100,
        )
        self.assertLess(found, 1 << 20)


if __name__ == "__main__":
    if not FREE_THREADED:
        print("a CPython with the GIL")
        sys.exit(77)
    unittest.main()
