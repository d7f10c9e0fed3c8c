"""The pytest plugin and the magic of IPython."""

import importlib.metadata
import importlib.util
import re
import sys
import unittest

from support import FREE_THREADED, ProgramCase, needs_module, needs_objects

PLUGIN = any(e.name == "hakmem" for e in importlib.metadata.entry_points(group="pytest11"))
MIB = 1 << 20


@needs_module("pytest")
@needs_objects
class Pytest(ProgramCase):
    def pytest(self, text, *options, status=0, under=()):
        (self.folder / "test_it.py").write_text("import pytest\n" + text)
        load = [] if PLUGIN else ["-p", "hakmem.pytest_plugin"]
        command = ["-m", *under, "pytest", "-p", "no:cacheprovider", *load, *options, "test_it.py"]
        done = self.python(*command, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    LIMITS = """
kept = []
@pytest.mark.limit_memory("4 MB")
def test_within(): x = bytes(3 << 20)
@pytest.mark.limit_memory("4 MB")
def test_above(): x = [bytes(3 << 20) for i in range(2)]
@pytest.mark.limit_leaks("1 MB")
def test_tight(): x = bytes(8 << 20)
@pytest.mark.limit_leaks(1 << 20)
def test_leaks(): kept.append(b"x" * (2 << 20))
"""

    def test_limits(self):
        for under in ((), ("hakmem", "run", "--all", "--labels", "site", "--report", "", "-m")):
            with self.subTest(under):
                out = self.pytest(self.LIMITS, "--hakmem", status=1, under=under)
                self.assertIn("2 failed, 2 passed", out)
                self.assertRegex(out, r"limit_memory: 6\.\d\d MiB at a time, 4\.00 MiB are allowed")
                self.assertRegex(out, r"limit_leaks: 2\.\d\d MiB stay, 1\.00 MiB are allowed")
                self.assertRegex(out, r"2\.\d\d MiB .*test_it\.py:11")
                rows = re.findall(r"(?m)^ +(\S+ [KM]?i?B) +(-?\S+ [KM]?i?B)  \S+::(\w+)$", out)
                self.assertEqual([r[2] for r in rows[:2]], ["test_tight", "test_above"])
                self.assertEqual(len(rows), 4)

    def test_what_hakmem_itself_holds_is_not_among_what_grew(self):
        """A heap of many lines has a long report, which is kept until the test is over."""
        lines = "".join(f"kept.append(str({i}) * 50)\n" for i in range(3000))
        text = (
            f"kept = []\nexec({lines!r})\n"
            "@pytest.mark.limit_leaks('1 KB')\ndef test_it(): kept.append(b'x' * (64 << 10))\n"
        )
        for labels in ("site", "native"):
            under = ("hakmem", "run", "--all", "--labels", labels, "--report", "", "-m")
            out = self.pytest(text, "--hakmem", status=1, under=under)
            grew = out.partition("what grew:\n")[2].splitlines()[:8]
            with self.subTest(labels):
                self.assertIn("test_it.py:" if labels == "site" else "  bytes", grew[0], grew)
                self.assertFalse([line for line in grew if "hakmem/_" in line], grew)

    def test_nothing_is_measured_unless_it_is_asked_for(self):
        out = self.pytest(self.LIMITS, "--strict-markers")
        self.assertIn("4 passed", out)
        self.assertNotIn("MiB", out)

    def test_table(self):
        out = self.pytest(self.LIMITS, "--hakmem", "--hakmem-top=1", status=1)
        self.assertEqual(len(re.findall(r"(?m)^ +\S+ MiB .*::", out)), 1)

    def test_warmups(self):
        text = """
cache = []
@pytest.mark.limit_leaks("1 MB", warmups=WARMUPS)
def test_cache():
    if not cache: cache.append(bytes(2 << 20))
"""
        self.pytest(text.replace("WARMUPS", "0"), "--hakmem", status=1)
        self.pytest(text.replace("WARMUPS", "1"), "--hakmem")

    def test_a_test_that_fails_fails_for_its_own_reason(self):
        text = '@pytest.mark.limit_memory(1)\ndef test_it(): assert 5 == 6'
        out = self.pytest(text, "--hakmem", status=1)
        self.assertIn("assert 5 == 6", out)
        self.assertNotIn("limit_memory:", out)

    def test_marks_that_are_wrong(self):
        for mark in ('limit_memory("lots")', "limit_memory(-1)", "limit_memory()", "limit_memory(5, x=1)", "limit_leaks(5, warmups=-1)"):  # fmt: skip
            out = self.pytest(f"@pytest.mark.{mark}\ndef test_it(): pass", "--hakmem", status=4)
            self.assertRegex(out, r"test_it: @pytest.mark.limit_\w+: ")

    def test_where_it_cannot_be(self):
        text = "def test_it(): pass"
        (self.folder / "conftest.py").write_text("import tracemalloc; tracemalloc.start()")
        out = self.pytest(text, "--hakmem", status=4)
        self.assertIn("another allocator is active", out)


@needs_module("IPython")
@unittest.skipIf(FREE_THREADED, "a free-threaded build keeps objects in its own heap")
class Magic(ProgramCase):
    def cells(self, *cells):
        text = f"""
            from IPython.core.interactiveshell import InteractiveShell
            shell = InteractiveShell.instance()
            shell.run_cell("%load_ext hakmem")
            for cell in {cells!r}: print("---"); shell.run_cell(cell)
        """
        done = self.python(self.script(text))
        return done.stdout.split("---\n")[1:]

    def test_cells(self):
        kept, freed, line, few = self.cells(
            "%%hakmem\nkept = b'x' * (3 << 20)\nprint('out')",
            "%%hakmem\nx = bytes(5 << 20); del x",
            "%hakmem more = bytes(2 << 20)",
            "%%hakmem --top 0\nlast = bytes(2 << 20)",
        )
        self.assertTrue(kept.startswith("out\n"))
        self.assertRegex(kept, r"peak 3\.\d\d MiB above what was live, kept 3\.\d\d MiB\n +3\.00 MiB ")
        self.assertRegex(freed, r"peak 5\.\d\d MiB above what was live, kept [^M]*\n")
        self.assertRegex(line, r"peak 2\.\d\d MiB above what was live, kept 2\.\d\d MiB\n")
        self.assertEqual(few.count("\n"), 1)

    def test_what_is_wrong(self):
        option, error = self.cells("%%hakmem --bad\n5", "%%hakmem\nx = bytes(2 << 20)\n1 / 0")
        self.assertRegex(option, "^%%hakmem: unrecognized arguments: --bad\n$")
        self.assertIn("ZeroDivisionError", error)
        # What IPython keeps of the error comes to it.
        self.assertRegex(error, r"\npeak \d+\.\d\d MiB above what was live, kept \d+\.\d\d MiB\n")


if __name__ == "__main__":
    if FREE_THREADED or not any(importlib.util.find_spec(name) for name in ("pytest", "IPython")):
        print("neither pytest nor IPython is installed for this Python, or it keeps objects in its own heap")
        sys.exit(77)
    unittest.main()
