"""Sites: the line of Python code that asked for each live block."""

import ctypes
import re
import subprocess
import sys
import unittest

from support import HERE, ProgramCase, compiler, needs_objects, preloaded


def sites(**options):
    return preloaded(all_domains=True, labels="site", **options)


@needs_objects
class Lines(ProgramCase):
    def test_every_line_of_a_long_function(self):
        """One object a line; distances between lines of all sizes, forwards and, in loops, backwards."""
        found = self.run_code(
            r"""
            import hakmem, json
            lines, expected, line = ["def f():", "    kept = []"], {}, 3
            for i in range(400):
                lines += [""] * (i * 7 % 150)
                line += i * 7 % 150
                shape = i % 4
                if shape == 0:
                    lines.append(f"    kept.append(object())")
                elif shape == 1:
                    lines += [f"    kept.append(", "        object()", "    )"]
                    line += 1
                elif shape == 2:
                    lines += ["    for i in range(3):", "        kept.append(object())", "        a = 1"]
                    line += 1
                else:
                    lines += ["    try:", "        kept.append(object()); raise KeyError", "    except KeyError: pass"]
                    line += 1
                expected[line] = 3 if shape == 2 else 1
                line += {0: 1, 1: 2, 2: 2, 3: 2}[shape]
            lines.append("    return kept")
            names = {}
            exec(compile("\n".join(lines), "long.py", "exec"), names)
            kept, counts = names["f"](), {}
            for o in kept:
                site = hakmem.site_of(o)
                assert (site.filename, site.function) == ("long.py", "f"), site
                counts[site.lineno] = counts.get(site.lineno, 0) + 1
            print(json.dumps([counts == expected, len(expected), sorted(set(counts.items()) ^ set(expected.items()))[:9]]))
            """,
            env=sites(),
        )
        self.assertEqual(found, [True, 400, []])

    def test_every_line_against_the_tables_of_python(self):
        """Each instruction of many functions of the standard library, by the decoder of the hook and by Python's."""
        if not compiler():
            self.skipTest("no C compiler")
        library = self.folder / "lines.so"
        binding = HERE.parents[1] / "bindings/python"
        source = binding / "lines/lines.c"
        flags = ("-shared", "-fPIC", "-O1", f"-I{binding}")
        subprocess.run([compiler(), *flags, str(source), "-o", str(library)], check=True)
        name = "hkp_line_3_10" if sys.version_info < (3, 11) else "hkp_line_3_11"
        line_of = getattr(ctypes.CDLL(str(library)), name)
        line_of.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_ssize_t, ctypes.c_void_p]
        checked = 0
        for code in self.codes():
            expected = [(at, line) for start, end, line in code.co_lines() for at in range(start, end, 2)]
            skipping = expected[::3] + expected[1::5] + expected[::-7]
            walk = ctypes.create_string_buffer(64)
            for at, line in expected + skipping:
                found = line_of(code.co_linetable, len(code.co_linetable), code.co_firstlineno, at, walk)
                self.assertEqual(found, line or 0, (code, at))
                checked += 1
        self.assertGreater(checked, 20_000)

    def codes(self):
        import argparse
        import inspect
        import typing

        for module in (argparse, inspect, subprocess, typing, unittest.case):
            with open(module.__file__, encoding="utf-8") as file:
                pending = [compile(file.read(), module.__file__, "exec")]
            while pending:
                code = pending.pop()
                yield code
                pending += [c for c in code.co_consts if hasattr(c, "co_code")]

    def test_what_a_call_makes_before_its_body_is_of_the_caller(self):
        """Cells of closures, generators and coroutines; through C code, too, and where nobody called in Python."""
        found = self.run_code(
            r"""
            import hakmem, json, threading
            def generator(x=0):

                yield x
            async def coroutine():

                pass
            def closure(a):

                return lambda: a
            class C:
                def __init__(self, x):
                    self.f = lambda: x
                def __iter__(self):

                    yield self
            def target(x):
                global kept
                kept = lambda: x
            def many():
                return [
                    C(i) for i in range(100)
                ]
            out = {}
            out[23] = generator()
            out[24] = coroutine()
            out[25] = closure(1).__closure__[0]
            out[26] = list(map(generator, range(3)))[1]
            out[20] = many()[99].f.__closure__[0]
            out[28] = iter(C(1))
            out[29] = (x for x in range(3))
            thread = threading.Thread(target=target, args=(1,))
            thread.start()
            thread.join()
            lines = {k: hakmem.site_of(o).lineno for k, o in out.items()}
            out[24].close()
            print(json.dumps([lines, hakmem.site_of(kept.__closure__[0]).function.rpartition(".")[2]]))
            """,
            env=sites(),
        )
        offset = found[0]["23"] - 23
        self.assertEqual({int(k) + offset: v for k, v in found[0].items()}, {v: v for v in found[0].values()})
        self.assertEqual(found[1], "run")

    def test_names_of_files_and_functions(self):
        found = self.run_code(
            r"""
            import hakmem, json
            out = []
            for file in ("plain.py", "gr\u00fcn.py", "\u043f\u0443\u0442\u044c/\u65e5\u672c.py", "\U0001f40d.py", "x" * 3000):
                names = {}
                exec(compile("class K\u00e9:\n  def m\u00fc(self): return object()\no = K\u00e9().m\u00fc()", file, "exec"), names)
                site = hakmem.site_of(names["o"])
                out.append([site.filename == file or site.filename == file[:len(site.filename)] and len(site.filename) > 700,
                            site.function, site.lineno])
            print(json.dumps(out))
            """,
            env=sites(),
        )
        function = "mü" if sys.version_info < (3, 11) else "Ké.mü"
        self.assertEqual(found, [[True, function, 2]] * 5)


@needs_objects
class Sites(ProgramCase):
    def test_sites_sum_to_live(self):
        wrong, count = self.run_code(
            """
            import hakmem, json
            wrong = 0
            def work(n):
                return [(i, str(i), [i], bytes(i % 2000), {i}) for i in range(n)]
            kept = []
            for n in (10, 100, 1000, 5000):
                kept.append(work(n))
                kept.append(bytes(3 << 20))
                report = hakmem.take_snapshot().parts
                wrong += sum(s["live_bytes"] for s in report["sites"]) != report["stats"]["live_bytes"]
                wrong += sum(s["live_blocks"] for s in report["sites"]) != report["stats"]["live_blocks"]
            print(json.dumps([wrong, len(report["sites"])]))
            """,
            env=sites(),
        )
        self.assertEqual(wrong, 0)
        self.assertGreater(count, 100)

    def test_what_was_asked_for(self):
        """Of blocks of all sizes, after a resize too, to the byte; and their sum."""
        found = self.run_code(
            """
            import array, ctypes, hakmem, json
            api = ctypes.PyDLL(None)
            new, resize = api.PyObject_Malloc, api.PyObject_Realloc
            new.restype = resize.restype = ctypes.c_void_p
            new.argtypes, resize.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t]
            sizes = [*range(0, 600), *range(600, 40_000, 97), 70_001, 300_003, 1_000_001, 3_000_017]
            def make(n): return new(n)
            def grow(p, n): return resize(p, n)
            def asked(function):
                sites = hakmem.take_snapshot().parts["sites"]
                found = [s for s in sites if s["function"].endswith(function)]
                return [sum(s[k] for s in found) for k in ("asked_bytes", "live_bytes", "live_blocks")]
            blocks = array.array("Q", sizes)
            for i, n in enumerate(sizes): blocks[i] = make(n)
            first = asked("make")
            for i, n in enumerate(sizes): blocks[i] = grow(blocks[i], n + n // 3 + 1)
            print(json.dumps([first, asked("make"), asked("grow"), sum(sizes), sum(n + n // 3 + 1 for n in sizes), len(sizes)]))
            """,
            # What is in free lists by the end was taken last by some line, of these two perhaps.
            env=sites(reused="off"),
        )
        made, left, grown, small, large, count = found
        self.assertEqual([made[0], made[2]], [small, count])
        self.assertEqual(left, [0, 0, 0])
        self.assertEqual([grown[0], grown[2]], [large, count])
        self.assertGreater(made[1], made[0] + 4 * count)

    def test_a_report_shows_both(self):
        done = self.run_script(
            "keep = [bytes(1000) for i in range(5000)]", "--all", "--labels", "site", "--report", "-"
        )
        self.assertRegex(done.stderr, r"  live bytes +asked for +blocks +share  line\n")
        live, asked = re.search(r"(?m)^ +([\d,]+) +([\d,]+) .* % .*program.py:1\b", done.stderr).groups()
        self.assertGreaterEqual(int(asked.replace(",", "")), 5000 * 1033)
        self.assertGreater(int(live.replace(",", "")), int(asked.replace(",", "")))

    def test_raw_has_lines_with_the_gil_and_without(self):
        """From threads that Python knows, and none from others, beside threads that run Python code."""
        found = self.run_code(
            """
            import ctypes, hakmem, json, threading
            held, free = ctypes.PyDLL(None), ctypes.CDLL(None)
            for api in held, free:
                for f in api.PyMem_RawMalloc, api.PyMem_RawCalloc, api.PyMem_RawRealloc: f.restype = ctypes.c_void_p
                api.PyMem_RawMalloc.argtypes = [ctypes.c_size_t]
                api.PyMem_RawCalloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
                api.PyMem_RawRealloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
            N, SIZE = 500, 5000
            def with_gil():
                for i in range(N): held.PyMem_RawMalloc(SIZE); held.PyMem_RawCalloc(1, SIZE)
            def moved():
                for i in range(N): held.PyMem_RawRealloc(held.PyMem_RawMalloc(10), SIZE)
            def without():
                for i in range(N): free.PyMem_RawMalloc(SIZE); free.PyMem_RawCalloc(1, SIZE)
            stop = False
            def busy():
                while not stop: keep = [object() for i in range(1000)]
            def large(name):
                sites = hakmem.take_snapshot().parts["sites"]
                return sum(s["live_blocks"] for s in sites if s["function"].endswith(name) and s["live_bytes"] > 1000 * SIZE // 2)
            others = threading.Thread(target=busy)
            others.start()
            before = next((s["live_blocks"] for s in hakmem.take_snapshot().parts["sites"] if not s["file"]), 0)
            threads = [threading.Thread(target=f) for f in (with_gil, without, moved) for i in range(3)]
            for t in threads: t.start()
            for t in threads: t.join()
            # A thread that Python does not know.
            pthread = ctypes.CDLL(None)
            thread, entry = ctypes.c_ulong(), ctypes.cast(pthread.PyMem_RawMalloc, ctypes.c_void_p)
            for i in range(100):
                assert pthread.pthread_create(ctypes.byref(thread), None, entry, ctypes.c_void_p(SIZE)) == 0
                pthread.pthread_join(thread, None)
            stop = True
            others.join()
            after = next(s["live_blocks"] for s in hakmem.take_snapshot().parts["sites"] if not s["file"])
            print(json.dumps([large("with_gil"), large("moved"), large("without"), after - before]))
            """,
            env=sites(),
        )
        with_gil, moved, without, none = found
        # A few objects of the interpreter may be on the same lines, and some that had none may be gone.
        self.assertIn(with_gil, range(3000, 3020))
        self.assertIn(moved, range(1500, 1520))
        self.assertIn(without, range(3000, 3020))
        self.assertIn(none, range(60, 200))

    def test_a_snapshot_by_line(self):
        text = """
            import hakmem, json
            def make():
                return [object() for i in range(20000)]
            a = hakmem.take_snapshot()
            kept = make()
            b = hakmem.take_snapshot()
            kept = None
            c = hakmem.take_snapshot()
            first = b.compare_to(a, "lineno")[0]
            back = {d.key: d for d in c.compare_to(b, "lineno")}[first.key]
            files = {s.key: s for s in b.statistics("filename")}
            functions = [s.key for s in b.statistics("function")]
            print(json.dumps([first.key.rpartition("/")[2], first.size_diff, first.count_diff, back.count_diff,
                              any(k.endswith("program.py") for k in files), any("make" in f for f in functions)]))
        """
        key, size, count, back, file, function = self.run_code(text, env=sites())
        self.assertEqual(key, "program.py:4")
        self.assertGreaterEqual(size, 20000 * 32 + 20000 * 8)
        self.assertGreaterEqual(count, 20000)
        # From 3.13 on, what is in free lists by then and was taken there last, such as a number and a tuple.
        self.assertLessEqual(count, 20005 if sys.version_info < (3, 13) else 20010)
        self.assertLessEqual(back, -20000)
        self.assertTrue(file)
        self.assertTrue(function is True or sys.version_info < (3, 11))  # 3.10 has no qualified names

    def test_resized_and_freed(self):
        """A list that grows is of the line that made it grow; what is gone is of no line."""
        found = self.run_code(
            """
            import hakmem, json
            def held(line):
                sites = hakmem.take_snapshot().parts["sites"]
                return sum(s["live_bytes"] for s in sites if s["file"].endswith("program.py") and s["line"] == line)
            x = []
            for i in range(100000):
                x.append(None)
            a = held(8)
            x.clear()
            print(json.dumps([a, held(8)]))
            """,
            env=sites(),
        )
        self.assertGreaterEqual(found[0], 800_000)
        self.assertEqual(found[1], 0)

    def test_code_that_dies_gives_its_address_to_other_code(self):
        found = self.run_code(
            r"""
            import hakmem, json
            wrong = {}
            for i in range(12000):
                names = {}
                exec(compile("\n" * (i % 50) + f"def f{i:05}(): return object()", f"{i:05}.py", "exec"), names)
                o = names[f"f{i:05}"]()
                site = hakmem.site_of(o)
                if (site.filename, site.function, site.lineno) != (f"{i:05}.py", f"f{i:05}", i % 50 + 1):
                    wrong[i] = site
            print(json.dumps([len(wrong), list(wrong.items())[:3]]))
            """,
            env=sites(),
        )
        self.assertEqual(found, [0, []])

    def test_generators_coroutines_threads_and_callbacks(self):
        found = self.run_code(
            """
            import asyncio, hakmem, json, threading
            out = {}
            def generator():
                yield object()
            async def coroutine():
                await asyncio.sleep(0)
                return object()
            class C:
                def __lt__(self, other):
                    out.setdefault("callback", object())
                    return True
            out["generator"] = next(generator())
            out["coroutine"] = asyncio.run(coroutine())
            sorted([C(), C()])
            t = threading.Thread(target=lambda: out.setdefault("thread", object()))
            t.start()
            t.join()
            def deep(n):
                return deep(n - 1) if n else object()
            out["deep"] = deep(900)
            print(json.dumps({k: [(s := hakmem.site_of(o)).function.split(".")[-1], s.lineno] for k, o in out.items()}))
            """,
            env=sites(),
        )
        self.assertEqual(
            found,
            {
                "generator": ["generator", 5],
                "coroutine": ["coroutine", 8],
                "callback": ["__lt__", 11],
                "thread": ["<lambda>", 16],
                "deep": ["deep", 20],
            },
        )

    def test_no_sites_elsewhere(self):
        found = self.run_code(
            """
            import hakmem, json
            snapshot = hakmem.take_snapshot()
            try:
                snapshot.statistics("lineno")
            except ValueError as error:
                print(json.dumps([hakmem.site_of(object()), str(error)]))
            """,
            env=preloaded(all_domains=True, labels="native"),
        )
        self.assertEqual(found, [None, "there is nothing by 'lineno' in this snapshot"])

    def test_a_block_that_is_resized_takes_the_line(self):
        """Of blocks that stay where they are, too, and of those that the core keeps in a larger one."""
        found = self.run_code(
            """
            import ctypes, hakmem, json
            api = ctypes.PyDLL(None)
            new, resize = api.PyObject_Malloc, api.PyObject_Realloc
            new.restype = resize.restype = ctypes.c_void_p
            new.argtypes, resize.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t]
            sizes = (20, 60, 100, 250, 300, 430, 460, 490, 508, 509, 520, 560, 600, 900, 1000, 1100, 5000)
            steps = [(a, b) for a in sizes for b in sizes] * 10
            blocks = [0] * len(steps)
            def make():
                for i, step in enumerate(steps): blocks[i] = new(step[0])
            def change():
                for i, step in enumerate(steps): blocks[i] = resize(blocks[i], step[1])
            def count():
                return {s.key.rpartition(":")[2]: s.count for s in hakmem.take_snapshot().statistics("function")}
            make()
            before = count()
            change()
            after = count()
            print(json.dumps([len(steps), before["make"], after.get("make", 0), after["change"]]))
            """,
            env=sites(),
        )
        steps, made, left, changed = found
        self.assertGreaterEqual(made, steps)
        self.assertLess(left, 50)
        self.assertGreaterEqual(changed, steps)

    def test_a_table_of_two_mebibytes_is_kept_for_the_next(self):
        calls = self.run_code(
            """
            import hakmem, json
            def tables(n):
                for i in range(n):
                    [None] * (1 << 18)
            tables(5)
            before = hakmem.stats()["os_calls"]
            tables(30)
            print(json.dumps(hakmem.stats()["os_calls"] - before))
            """,
            env=sites(),
        )
        self.assertLess(calls, 5)

    def test_names_that_are_no_text(self):
        """File names of other encodings; functions may be called anything."""
        found = self.run_code(
            r"""
            import hakmem, json
            names = {}
            exec(compile("def f(): return object()", "caf\udce9.py", "exec"), names)
            f = names["f"]
            field = "co_qualname" if hasattr(f.__code__, "co_qualname") else "co_name"
            f.__code__ = f.__code__.replace(**{field: "f\ud800"})
            o = f()
            site = hakmem.site_of(o)
            listed = [s for s in hakmem._api._hakmem.sites() if s[0].startswith("caf")]
            lines = [s.key for s in hakmem.take_snapshot().statistics("lineno") if s.key.startswith("caf")]
            print(json.dumps([site.filename, site.function, len(listed) > 0, lines]))
            """,
            env=sites(),
        )
        self.assertEqual(found, ["caf\udce9.py", "f\ufffd", True, ["caf\ufffd.py:1"]])

    def test_an_exec_in_a_loop_makes_no_new_sites(self):
        found = self.run_code(
            """
            import hakmem, json
            def turn():
                names = {}
                exec("def f(): return [object() for i in range(3)]", names)
                return names["f"]()
            counts = []
            for k in range(3):
                for i in range(2000):
                    turn()
                counts.append(len(hakmem._api._hakmem.sites()))
            print(json.dumps(counts))
            """,
            env=sites(),
        )
        self.assertLessEqual(max(found) - found[0], 6)

    def test_more_lines_than_there_are_numbers_for(self):
        """131,071: blocks of further lines have none, and known lines keep theirs."""
        found = self.run_code(
            """
            import hakmem, json
            def known(): return [object() for i in range(1000)]
            early, kept = known(), []
            a = kept.append
            for i in range(14):
                exec(compile("a(object())\\n" * 10000, f"part{i}.py", "exec"))
            exec(compile("late = [object() for i in range(3000)]", "late.py", "exec"))
            early += known()
            shot = hakmem.take_snapshot()
            report = shot.parts
            wrong = sum(s["live_bytes"] for s in report["sites"]) != report["stats"]["live_bytes"]
            lines = {s.key.rpartition("/")[2]: s.count for s in shot.statistics("lineno")}
            parts = sum(k.startswith("part") for k in lines)
            print(json.dumps([parts, wrong, lines.get("program.py:3"), any("late.py" in k for k in lines)]))
            """,
            env=sites(),
        )
        self.assertGreater(found[0], 120000)  # what started the program has some
        self.assertLess(found[0], 131072)
        self.assertFalse(found[1])
        self.assertGreaterEqual(found[2], 2000)
        self.assertFalse(found[3])


if __name__ == "__main__":
    unittest.main()
