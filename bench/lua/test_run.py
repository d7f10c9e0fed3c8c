"""Tests of run.py and states.py against stand-ins for the hosts whose figures are known."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Writes the figures that the command's name asks for, then runs it.
MEASURE = """#!/bin/sh
out=$1; shift
case "$*" in
  *_builtin*)       cpu=1.0 peak=10240 ;;
  *_hak*--labels*)  cpu=0.9 peak=11264 ;;
  *_hak*)           cpu=0.8 peak=9216 ;;
esac
echo "{\\"user_s\\": $cpu, \\"sys_s\\": 0.0, \\"wall_s\\": 9, \\"peak_kb\\": $peak, \\"faults\\": 1}" > "$out"
exec "$@"
"""
HOST = """#!/bin/sh
if [ "$1" = --version ]; then echo "Stand-in 1.0"; echo ${0##*_}; else echo "sum 42"; fi
"""
STATES = """#!/bin/sh
kb=30; [ "$2" = builtin ] && kb=40
echo "{\\"resident_kb\\": $kb, \\"create_us\\": 1, \\"close_us\\": 2, \\"lua_kb\\": 3}"
"""


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        self.program("measure", MEASURE)
        for allocator in ("builtin", "hak"):
            self.program(f"lua_host_luajit_{allocator}", HOST)
        self.program("lua_states_luajit", STATES)

    def program(self, name, text):
        path = self.build / name
        path.write_text(text)
        path.chmod(0o755)

    def tool(self, name, *arguments):
        return subprocess.run(
            [sys.executable, str(HERE / name), "--build", str(self.build), *arguments],
            capture_output=True,
            text=True,
        )

    def assertFails(self, done, *words):
        self.assertEqual(done.returncode, 1)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_ratios_and_files(self):
        result, table = self.build / "r.json", self.build / "r.md"
        done = self.tool(
            "run.py", "-n", "3", "--json", str(result), "--markdown", str(table), "text", "trees"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: mimalloc", done.stderr)
        data = json.loads(result.read_text())
        self.assertEqual(next(iter(data)), "version")
        self.assertEqual(data["version"], 1)
        self.assertEqual(data["versions"]["luajit"], "Stand-in 1.0")
        self.assertEqual(data["versions"]["hak"], "hak")
        self.assertIn("thp", data["machine"])
        self.assertEqual(len(data["samples"]["luajit"]["text"]["hak"]), 3)
        ratios = data["ratios"]["luajit"]
        self.assertAlmostEqual(ratios["hak"]["cpu_s"]["geomean"], 0.8)
        self.assertAlmostEqual(ratios["hak"]["peak_kb"]["programs"]["trees"], 0.9)
        self.assertAlmostEqual(ratios["labels"]["cpu_s"]["geomean"], 0.9)
        self.assertAlmostEqual(ratios["labels"]["peak_kb"]["geomean"], 1.1)
        self.assertIn("| geomean |  | 0.800 | 0.900 |  | 0.900 | 1.100 |", table.read_text())

    def test_markdown_replaces_its_part(self):
        page = self.build / "page.md"
        page.write_text("before\n<!-- begin run.py -->\nold\n<!-- end run.py -->\nafter\n")
        self.assertEqual(self.tool("run.py", "-n", "1", "--markdown", str(page), "text").returncode, 0)
        text = page.read_text()
        self.assertTrue(text.startswith("before\n<!-- begin run.py -->\n"))
        self.assertTrue(text.endswith("<!-- end run.py -->\nafter\n"))
        self.assertIn("| text |", text)
        self.assertNotIn("old", text)
        page.write_text("no marks\n")
        self.assertFails(self.tool("run.py", "-n", "1", "--markdown", str(page), "text"), "begin run.py")

    def test_differing_output_is_an_error(self):
        self.program("lua_host_luajit_hak", HOST.replace("42", "43"))
        self.assertFails(self.tool("run.py", "-n", "1", "text"), "text under luajit", "sum 43")

    def test_failing_program_is_an_error(self):
        self.program("lua_host_luajit_hak", HOST.replace('echo "sum 42"', "echo broken >&2; exit 3"))
        self.assertFails(self.tool("run.py", "-n", "1", "text"), "exit status 3", "broken")

    def test_bad_arguments(self):
        self.assertFails(self.tool("run.py", "nosuch"), "unknown program 'nosuch'", "trees")
        self.assertFails(
            self.tool("run.py", "--variants", "jemalloc"), "unknown variant 'jemalloc'", "labels"
        )
        self.assertFails(self.tool("run.py", "--engines", "lua5.4"), "no lua_host_lua5.4_builtin")
        self.assertFails(self.tool("run.py", "--variants", "mimalloc"), "not built", "mimalloc")
        self.assertFails(self.tool("run.py", "--cpu", "9999"), "CPU 9999", "allowed are")
        self.assertFails(self.tool("states.py", "nosuch"), "unknown measurement 'nosuch'", "teardown")

    def test_states(self):
        result = self.build / "s.json"
        done = self.tool("states.py", "-n", "2", "--json", str(result), "fresh")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads(result.read_text())
        self.assertEqual([r["resident_kb"] for r in data["samples"]["fresh"]["luajit"]["builtin"]], [40, 40])
        self.assertEqual(data["counts"]["fresh"], 500)
        self.assertIn("30.0", done.stdout)


class Measure(unittest.TestCase):
    """The real one, where it was built."""

    def test_figures_and_status(self):
        measure = os.environ.get("MEASURE")
        if not measure:
            self.skipTest("MEASURE does not name the program")
        with tempfile.NamedTemporaryFile("r") as out:
            touch = "x = bytearray(64 << 20)"
            done = subprocess.run(
                [measure, out.name, sys.executable, "-S", "-c", touch + "; raise SystemExit(5)"]
            )
            self.assertEqual(done.returncode, 5)
            used = json.load(out)
            self.assertGreater(used["peak_kb"], 64 << 10)
            self.assertLess(used["peak_kb"], 96 << 10)
            out.seek(0)
            subprocess.run([measure, out.name, "true"])
            # Not the memory of this Python, which is far above.
            self.assertLess(json.load(out)["peak_kb"], 4096)


if __name__ == "__main__":
    unittest.main()
