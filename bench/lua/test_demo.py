"""The demonstration, small, on a real build: BUILD names it."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


@unittest.skipUnless(shutil.which("luacheck"), "luacheck is not installed (Debian package lua-check)")
class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # As scripts/demo calls it: while the figures come, what reads profiles is built.
        cls.figures, page = (cls.output("--quick", part) for part in ("--figures", "--page"))
        cls.text = cls.figures + page

    @staticmethod
    def output(*options):
        command = [sys.executable, str(HERE / "demo.py"), "--build", os.environ["BUILD"], *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout

    def part(self, number):
        """The lines of a part of the output."""
        found = re.search(rf"^{number}  .*?(?=^{number + 1}  |\Z)", self.text, re.M | re.S)
        self.assertTrue(found, f"part {number} is missing")
        return found.group(0)

    def test_fits_a_page(self):
        for line in self.text.splitlines():
            if "file://" not in line:  # wherever the build is
                self.assertLessEqual(len(line), 100, line)
        self.assertNotIn("\033", self.text)

    def test_real_program(self):
        part = self.part(2)
        self.assertRegex(part, r"Total: \d+ warnings / \d+ errors? in \d+ files")
        for way in ("own allocator", "hakmem", "hakmem with labels"):
            self.assertRegex(part, rf"(?m)^   {way} +\d+\.\d+ +\d\.\d\d ")
        self.assertRegex(part, r"own allocator +\S+ +1\.00 ")

    def test_report_has_labels_that_hold_memory(self):
        for label in ("table", "string", "hash"):
            self.assertRegex(self.part(1), rf"(?m)^ +{label} +[1-9]\d* +[1-9]\d* ")

    def test_limit(self):
        rounds = re.findall(r'round \d: "not enough memory" at ([\d.]+) of 16.0 MiB', self.part(3))
        self.assertGreaterEqual(len(rounds), 3)
        for peak in rounds:
            self.assertLessEqual(float(peak), 16.0)
            self.assertGreater(float(peak), 12.0)

    def test_lines_and_their_page(self):
        self.assertNotRegex(self.figures, r"(?m)^6  ")
        part = self.part(6)
        command = Path(os.environ["BUILD"]) / "bindings/report/hakmem"
        if not command.exists():
            self.assertIn("was not built", part)
            return
        # Two tables of 1 MiB, which no sample of 64 KiB misses.
        self.assertGreaterEqual(len(re.findall(r"(?m)^ +1\.0\d MiB .* array +make_op_cache \(\w+", part)), 2, part)
        page = re.search(r"file://(\S+)", part)
        if page:
            self.assertIn("hakmem-report/1", Path(page[1]).read_text())

    def test_trim_gives_back(self):
        rows = re.findall(r"hakmem(?: with labels)? +([\d.]+) +([\d.]+) +([\d.]+)$", self.part(4), re.M)
        self.assertGreaterEqual(len(rows), 2)
        for built, _, trimmed in rows:
            self.assertLess(float(trimmed), float(built) / 2)

    def test_drop_is_faster_than_close(self):
        part = self.part(5)
        closed = [float(ms) for ms in re.findall(r"own allocator, lua_close +\d+ +([\d.]+)", part)]
        dropped = [float(ms) for ms in re.findall(r"hak_lua_drop +\d+ +([\d.]+)", part)]
        self.assertTrue(closed)
        self.assertEqual(len(closed), len(dropped))
        for close, drop in zip(closed, dropped, strict=True):
            self.assertLess(drop, close / 3)


if __name__ == "__main__":
    unittest.main()
