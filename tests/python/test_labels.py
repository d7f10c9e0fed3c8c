"""Native labels: the part of CPython, or the extension, that asked for a block."""

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import textwrap
import unittest

import hakmem
from support import FREE_THREADED, ProgramCase, needs_objects, preloaded

# What is to grow by at least this many bytes when the code runs; the whole program runs in a function so that
# its own names are no dictionary.
KINDS = {
    "unicode": ("[chr(i % 90 + 33) * 60 + str(i) for i in range(3000)]", 300_000),
    "bytes": ("[b'%d' % i * 20 for i in range(3000)]", 200_000),
    "int": ("[10 ** 40 + i for i in range(5000)]", 150_000),
    "dict": ("[{i: i, 'a': 1} for i in range(3000)]", 400_000),
    "list": ("[[i, i] for i in range(5000)]", 400_000),
    "tuple": ("[tuple([i, i]) for i in range(5000)]", 190_000),
    "set": ("[{i, i + 1} for i in range(2000)]", 400_000),
    "function": ("[lambda: i for i in range(3000)]", 400_000),
    "instance": ("[C() for i in range(3000)]", 100_000),
    "type": ("[type('T', (), {}) for i in range(300)]", 200_000),
    "code": ("[compile(f'a = {i}', f'f{i}', 'exec') for i in range(1000)]", 150_000),
    "collections": ("[collections.deque([i]) for i in range(500)]", 300_000),
    "weakref": ("[weakref.ref(c, print) for i in range(3000)]", 200_000),
    "regex": ("[(re.compile('a' * (i % 90 + 9) + str(i)), re.purge())[0] for i in range(150)]", 50_000),
    "io": ("[io.BytesIO(b'%d' % i * 50).read(120) for i in range(2000)]", 150_000),
    "exceptions": ("[ValueError(i) for i in range(3000)]", 200_000),
    "buffer": ("[memoryview(b'abc') for i in range(1000)]", 150_000),
}
if FREE_THREADED:  # tables of items; the objects are mimalloc's
    KINDS = {
        name: (KINDS[name][0], least)
        for name, least in (("dict", 400_000), ("list", 150_000), ("collections", 250_000))
    }
PROGRAM = """
    import collections, gc, io, json, re, weakref, hakmem
    class C:
        __slots__ = ("a", "__weakref__")
    c = C()
    def amounts():
        gc.collect()
        return {{name: size for name, (size, _) in hakmem.labels().items()}}
    def grown(make):
        make()
        before = amounts()
        kept = make()
        after = amounts()
        return {{name: after[name] - before.get(name, 0) for name in after}}
    print(json.dumps([grown(lambda: {code}), hakmem.take_snapshot().parts["symbols"]]))
"""


def native(**options):
    return preloaded(all_domains=True, labels="native", **options)


MAPPED = """
    import json
    sizes = {}
    for line in open("/proc/self/maps"):
        fields = line.split()
        if len(fields) > 5 and fields[5][0] == "/":
            low, high = (int(x, 16) for x in fields[0].split("-"))
            sizes[fields[5]] = sizes.get(fields[5], 0) + high - low
    print(json.dumps(sizes))
"""


class Scopes(ProgramCase):
    def test_labels_of_the_program_go_before(self):
        for labels in "native", "site":
            with self.subTest(labels):
                before, inside, after = self.run_code(
                    """
                    import hakmem, json
                    def blocks(): return [bytes(1000) for i in range(100)]
                    def grown(make):
                        then = hakmem.labels()
                        keep.append(make())
                        now = hakmem.labels()
                        return [now.get(x, [0])[0] - then.get(x, [0])[0] for x in ("bytes", "mine")]
                    def mine():
                        with hakmem.label("mine"): return blocks()
                    keep = []
                    print(json.dumps([grown(blocks), grown(mine), grown(blocks)]))
                """,
                    env=preloaded(all_domains=True, labels=labels),
                )
                self.assertGreater(before[0], 100_000)
                self.assertEqual(before[1], 0)
                self.assertLess(inside[0], 10_000)
                self.assertGreater(inside[1], 100_000)
                self.assertGreater(after[0], 100_000)
                self.assertLess(abs(after[1]), 10_000)


class Memory(ProgramCase):
    def test_the_file_of_the_names_is_not_kept(self):
        for labels in "native", "site":
            mapped = self.run_code(MAPPED, env=preloaded(all_domains=True, labels=labels))
            self.assertEqual(mapped, self.run_code(MAPPED, env=preloaded(all_domains=True)))

    def test_the_unwind_tables_are_not_kept(self):
        without = self.run_code(RESIDENT, env=preloaded(all_domains=True))
        self.assertLessEqual(self.run_code(RESIDENT, env=native()), without + 100)


RESIDENT = """
    import json, math, re, sys, zlib
    sizes, name = {}, None
    for line in open("/proc/self/smaps"):
        if re.match("[0-9a-f]+-", line):
            fields = line.split()
            name = fields[5] if len(fields) > 5 and fields[1] == "r--p" else None
        elif line.startswith("Rss:") and name:
            sizes[name] = sizes.get(name, 0) + int(line.split()[1])
    print(json.dumps(max(size for name, size in sizes.items() if "python" in name and "hakmem" not in name)))
"""


def strip(file):
    """Takes the names, where there are any: strip breaks what patchelf changed, which Debian had stripped before."""
    sections = subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout
    if ".symtab" in sections:
        subprocess.run(["strip", file], check=True)


class WithoutNames(ProgramCase):
    """Copies of this interpreter, as distributions ship them and worse."""

    def copy(self, change):
        """change(file) of the file with CPython in it. Returns the interpreter and its environment."""
        with open("/proc/self/maps") as maps:
            files = {line.split()[-1] for line in maps if "/" in line}
        library = next((file for file in files if os.path.basename(file).startswith("libpython3.")), None)
        image = library or os.path.realpath(sys.executable)
        copy = self.folder / os.path.basename(image)
        shutil.copy(image, copy)
        change(copy)
        packages = os.path.dirname(os.path.dirname(hakmem.__file__))
        env = native() | {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": packages, "LD_LIBRARY_PATH": str(self.folder)}
        return (os.path.realpath(sys.executable) if library else str(copy)), env

    def ask(self, code, interpreter, env):
        done = subprocess.run([interpreter, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    @needs_objects
    @unittest.skipUnless(shutil.which("strip"), "no strip")
    def test_of_a_stripped_one_kinds_are_told_apart(self):
        interpreter, env = self.copy(strip)
        (symbols, mixed, found), _ = self.ask(
            """
            import hakmem, json, types, weakref
            class C: pass
            cs = [C() for i in range(2000)]
            def grown(make):
                before = hakmem.labels()
                kept = [make(i) for i in range(2000)]
                after = hakmem.labels()
                blocks = {name: after[name][1] - before.get(name, (0, 0))[1] for name in after}
                return max(blocks, key=blocks.get)
            makers = {
                "set": lambda i: {i}, "dict": lambda i: {i: i}, "instance": lambda i: C(),
                "weakref": lambda i: weakref.ref(cs[i]), "exceptions": lambda i: ValueError(),
                "float": lambda i: complex(i, 1), "buffer": lambda i: memoryview(b"abc"),
            }
            found = {name: grown(make) for name, make in makers.items()}
            before = hakmem.labels()
            modules = [types.ModuleType("m") for i in range(2000)]
            found["module"] = hakmem.labels()["module"][1] - before["module"][1]
            print(json.dumps([hakmem.take_snapshot().parts["symbols"], hakmem.status()["mixed"], found]))
            """,
            interpreter,
            env,
        )
        self.assertEqual((symbols, mixed), ("dynsym", {}))
        # 3.10 makes a module as it makes any instance.
        modules = found.pop("module")
        self.assertEqual(modules >= 2000, sys.version_info >= (3, 11), modules)
        self.assertEqual(found, {name: name for name in found})

    @needs_objects
    def test_doubts_are_told(self):
        """Without unwind tables nobody is found above a helper."""
        def drop_tables(file):
            data = bytearray(file.read_bytes())
            at, = struct.unpack_from("<Q", data, 32)
            size, count = struct.unpack_from("<HH", data, 54)
            for header in range(at, at + size * count, size):
                if struct.unpack_from("<I", data, header)[0] == 0x6474E550:  # PT_GNU_EH_FRAME
                    struct.pack_into("<I", data, header, 0)
            file.write_bytes(data)

        interpreter, env = self.copy(drop_tables)
        status, text = self.ask(
            "import hakmem, json; print(json.dumps(hakmem.status()))", interpreter, env | {"HAKMEM_REPORT": "-"}
        )
        self.assertEqual(status["mixed"].get("set"), "core")
        note = "labels do not tell all kinds apart in this interpreter; there count set as core"
        self.assertIn(note, status["why"])
        self.assertIn(f"\n  note: {note}", text)
        self.ask("print(1)", interpreter, env | {"HAKMEM_REPORT": str(self.folder / "r.json")})
        (report,) = self.reports()
        self.assertEqual(report["mixed"], status["mixed"])


class Kinds(ProgramCase):
    def test_each_kind_grows_under_its_label(self):
        for label, (code, least) in KINDS.items():
            with self.subTest(label):
                grown, symbols = self.run_code(PROGRAM.format(code=code), env=native())
                self.assertGreaterEqual(grown.get(label, 0), least, grown)
                core = 0.1 if symbols != "dynsym" else 0.35
                self.assertLess(grown["core"], core * sum(grown.values()) + 20_000, grown)

    @needs_objects
    def test_extensions_by_the_name_of_their_library(self):
        for module, code in (
            ("_decimal", "decimal.Decimal(i)"),
            ("_elementtree", "ElementTree.Element('a')"),
        ):
            spec = importlib.util.find_spec(module)
            with self.subTest(module):
                if spec is None or not spec.has_location or not spec.origin.endswith(".so"):
                    self.skipTest(f"{module} is no library in this Python")
                grown, _ = self.run_code(
                    "import decimal\nfrom xml.etree import ElementTree\n"
                    + __import__("textwrap").dedent(PROGRAM).format(code=f"[{code} for i in range(3000)]"),
                    env=native(),
                )
                self.assertGreater(grown[f"ext:{module}"], 100_000)

    @needs_objects
    def test_a_generator_has_a_label_where_functions_have_names(self):
        source, grown = self.run_code(
            """
            import hakmem, json
            before = dict(hakmem.labels())
            kept = [(x for x in range(3)) for i in range(3000)]
            report = hakmem.take_snapshot().parts
            grown = report["labels"].get("generator", {"live_bytes": 0})["live_bytes"] - before.get("generator", (0, 0))[0]
            print(json.dumps([report["symbols"], grown]))
            """,
            env=native(),
        )
        self.assertIn(source, ("symtab", "debug", "dynsym"))
        if source != "dynsym":
            self.assertGreater(grown, 300_000)


class Exact(ProgramCase):
    """Whole programs: what their labels have is what is live."""

    def check(self, text, labels, core_most):
        for report in self.run_and_report(text, labels):
            amounts = report["labels"].values()
            self.assertEqual(sum(a["live_bytes"] for a in amounts), report["stats"]["live_bytes"])
            self.assertEqual(sum(a["live_blocks"] for a in amounts), report["stats"]["live_blocks"])
            core = report["labels"].get("core", {"live_bytes": 0})["live_bytes"]
            self.assertLess(core, core_most * report["stats"]["live_bytes"], report["labels"])

    def run_and_report(self, text, labels):
        path = self.folder / "report-%p.json"
        self.run_script(text, "--all", "--labels", labels, "--report", str(path))
        found = self.reports("report-*.json")
        self.assertTrue(found)
        return found

    def test_a_program_of_many_parts(self):
        text = """
            import argparse, asyncio, collections, csv, decimal, email, html.parser, io, json, logging, pickle, re
            import sqlite3, unittest, xml.etree.ElementTree as ET, threading
            data = [{"id": i, "name": f"n{i}", "v": [i, i + 0.5, str(i)]} for i in range(5000)]
            again = pickle.loads(pickle.dumps(json.loads(json.dumps(data))))
            tree = ET.fromstring("<a>" + "<b c='1'>x</b>" * 2000 + "</a>")
            db = sqlite3.connect(":memory:")
            db.execute("create table t(a, b)")
            db.executemany("insert into t values(?, ?)", [(i, str(i)) for i in range(2000)])
            rows = db.execute("select * from t").fetchall()
            patterns = [re.compile(f"a{i}|b+c*") for i in range(100)]
            async def leaf(i):
                await asyncio.sleep(0)
                return [i]
            async def tree_of(n):
                return await asyncio.gather(*(leaf(i) for i in range(n)))
            leaves = asyncio.run(tree_of(2000))
            kept = []
            threads = [threading.Thread(target=lambda: kept.append([str(i) for i in range(3000)])) for _ in range(8)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            import os
            if os.fork() == 0:
                more = [str(i) for i in range(1000)]
                raise SystemExit
            os.wait()
        """
        self.check(text, "native", 0.15)
        for path in self.folder.glob("report-*.json"):
            path.unlink()
        if not FREE_THREADED:
            self.check(text, "site", 0.15)

    @needs_objects
    def test_raw_and_arenas_only(self):
        path = self.folder / "report.json"
        self.run_script("x = [str(i) for i in range(100000)]", "--labels", "native", "--report", str(path))
        (report,) = self.reports()
        self.assertEqual(
            sum(a["live_bytes"] for a in report["labels"].values()), report["stats"]["live_bytes"]
        )
        self.assertGreater(report["labels"]["arena"]["live_bytes"], 4 << 20)
        self.assertGreater(report["labels"]["interpreter"]["live_bytes"], 0)


class Interpreters(ProgramCase):
    PROGRAM = r"""
        import hakmem, json, threading, time
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        code = "import json\nfor k in range(15): json.loads(json.dumps([{'id': i, 'v': [i, str(i)]} for i in range(200)]))"
        def labels():
            return {k: v for k, (v, _) in hakmem.labels().items() if "@" in k and v}
        first = labels()
        one = interpreters.create()
        interpreters.run_string(one, "keep = [[i] for i in range(5000)]")
        then = labels()
        def work():
            for i in range(3):
                more = interpreters.create()
                interpreters.run_string(more, code)
                interpreters.destroy(more)
        threads = [threading.Thread(target=work) for i in range(3)]
        [t.start() for t in threads]
        for i in range(5):
            kept = [str(i) for i in range(10000)]
        [t.join() for t in threads]
        for i in range(200):  # threads free their last blocks after join() returns
            time.sleep(0.3)
            report = hakmem.take_snapshot().parts
            sums = [sum(x["live_bytes"] for x in report["labels"].values()) - report["stats"]["live_bytes"]]
            if "sites" in report:
                sums.append(sum(x["live_bytes"] for x in report["sites"]) - report["stats"]["live_bytes"])
            if not any(sums):
                break
        print(json.dumps([first, then, sums]))
    """

    @needs_objects
    def test_domains_of_each_interpreter(self):
        first, then, sums = self.run_code(self.PROGRAM, env=preloaded(all_domains=True, labels="off"))
        self.assertEqual(first, {})
        self.assertGreater(then["obj@1"], 5000 * 64)
        self.assertGreater(then["mem@1"], 5000 * 16)
        self.assertEqual({name.partition("@")[2] for name in then}, {"1"})
        self.assertEqual(sums, [0])

    def test_other_labels_do_not_know_interpreters_but_are_exact(self):
        for labels in ("native", "site"):
            with self.subTest(labels):
                first, then, sums = self.run_code(
                    self.PROGRAM, env=preloaded(all_domains=True, labels=labels)
                )
                self.assertEqual((first, then), ({}, {}))
                self.assertEqual(set(sums), {0})


class Table(ProgramCase):
    @needs_objects
    def test_a_report_has_bars_and_fits_into_100_columns(self):
        done = self.run_script(
            "import json; x = [str(i).zfill(100) for i in range(20000)]", *"--all --labels site --report -".split()
        )
        lines = done.stderr.splitlines()
        tables = [line for line in lines if line.startswith("  ") and " %  " in line]
        self.assertGreater(len(tables), 20)
        self.assertLessEqual(max(map(len, tables)), 100)
        (line,) = [line for line in lines if line.lstrip().startswith("unicode ")]
        self.assertIn("#" * 20, line)
        self.assertLessEqual(len(line), 100)
        (line,) = [line for line in lines if "program.py:1" in line]
        self.assertLessEqual(len(line), 100)
        self.assertIn("<module>" if sys.version_info >= (3, 12) else "<listcomp>", line)


if __name__ == "__main__":
    unittest.main()
