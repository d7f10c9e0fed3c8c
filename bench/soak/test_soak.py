"""Tests of scripts/soak: each kind runs, verdicts are right, a leak that is planted is told as drift.

The environment variable BUILD is the build tree. Steps are counted, not timed.
"""

import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from verdict import verdict  # noqa: E402

MIB = 2**20


def series(**figures):
    """A hundred samples; each figure is a function of the number."""
    base = {
        "resident_bytes": lambda i: 100 * MIB + i % 7 * 4096,
        "metadata_bytes": lambda _: MIB,
        "mappings": lambda _: 50,
        "os_calls": lambda i: 100 + i // 50,
        "ops": lambda i: i * 10**8,
    }
    return [{"seconds": 1.0 * i, **{k: f(i) for k, f in {**base, **figures}.items()}} for i in range(100)]


class Verdicts(unittest.TestCase):
    def missed(self, words, **figures):
        found = verdict(series(**figures), True)["missed"]
        self.assertEqual(len(found), len(words), found)
        for word, text in zip(words, found, strict=True):
            self.assertIn(word, text)

    def test_steady_memory_reaches_all_goals(self):
        self.missed([])

    def test_growth_is_drift(self):
        self.missed(["resident memory drifts: +1.3"], resident_bytes=lambda i: 100 * MIB + i * 30000)

    def test_less_memory_is_no_miss(self):
        self.missed([], resident_bytes=lambda i: 100 * MIB - i * 30000)

    def test_spikes_and_the_start_are_not_drift(self):
        self.missed([], resident_bytes=lambda i: (100 + 80 * (i in (60, 90, 99)) - max(50 - i, 0)) * MIB)

    def test_a_machine_that_was_busy_for_most_of_the_time_is_not_drift(self):
        def ops(i):
            return (min(i, 70) + 40 * max(i - 70, 0)) * 10**7

        self.missed([], ops=ops, resident_bytes=lambda i: 100 * MIB + min(ops(i), 5 * 10**9) // 1000)

    def test_tables_and_mappings(self):
        self.missed(["tables grow", "mappings grow"], metadata_bytes=lambda i: MIB + i * 300, mappings=lambda i: i)

    def test_system_calls(self):
        self.missed(["1.0e-06 system calls"], os_calls=lambda i: i * 100)

    def test_calls_that_are_not_counted_are_no_goal(self):
        self.assertEqual(verdict(series(), False)["calls"], None)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem-soak-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def soak(self, *arguments):
        return subprocess.run(
            [sys.executable, "-B", HERE / "run.py", "--build", os.environ["BUILD"], "--minutes", "0", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    def verdict_of(self, kind, samples, *arguments):
        done = self.soak("--samples", str(samples), *arguments, kind)
        if "is left out" in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.skipTest(done.stderr.splitlines()[0])
        found = json.loads(done.stdout)
        self.assertEqual(found["kind"], kind)
        self.assertGreater(found["operations"], 0)
        self.assertGreater(found["resident_mib"], 0)
        self.assertEqual(done.returncode, bool(found["missed"]), done.stderr)
        return found

    def leak_is_told(self, kind, samples, leak):
        found = self.verdict_of(kind, samples, "--leak", leak)
        self.assertIn("resident memory drifts", found["missed"][0])
        return found

    def test_core(self):
        self.assertLess(self.verdict_of("core", 24)["drift_percent"], 4)
        self.assertGreater(self.leak_is_told("core", 24, "1000")["drift_percent"], 8)

    def test_shared(self):
        self.leak_is_told("shared", 24, "1000")

    def test_lua(self):
        self.leak_is_told("lua", 48, "200")

    def test_python(self):
        self.leak_is_told("python", 200, "20")

    def test_wasm(self):
        self.assertIsNone(self.verdict_of("wasm", 8)["calls"])
        self.assertIn("a leak cannot be planted", self.soak("--leak", "1", "wasm").stderr)

    def test_files(self):
        table, page = self.folder / "all.csv", self.folder / "page.md"
        self.verdict_of("core", 4, "--csv", str(table), "--markdown", str(page), "--json", str(self.folder / "j"))
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(r["kind"], int(r["ops"])) for r in rows], [("core", 20000 * n) for n in range(51, 55)])
        self.assertEqual(int(rows[-1]["resident_bytes"]) % 4096, 0)
        self.assertIn("| core |", page.read_text())
        self.assertEqual(len(json.loads((self.folder / "j").read_text())["results"]["core"]["samples"]), 4)

    def test_plot(self):
        if not importlib.util.find_spec("matplotlib"):
            done = self.soak("--plot", str(self.folder / "plot.svg"), "core")
            self.assertEqual((done.returncode, "no matplotlib for --plot" in done.stderr), (1, True))
            return
        self.verdict_of("core", 4, "--plot", str(self.folder / "plot.svg"))
        self.assertIn("</svg>", (self.folder / "plot.svg").read_text())

    def test_wrong_arguments(self):
        self.assertIn("unknown kind 'cor'", self.soak("cor").stderr)
        done = self.soak("--samples", "3", "core")
        self.assertEqual((done.returncode, "at least 4" in done.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
