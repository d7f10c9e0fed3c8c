#!/usr/bin/env python3
"""run.py: choice of the best own variant, ratios, goals; wrong arguments."""

import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

import run

HERE = Path(__file__).resolve().parent


def samples(key, figure, **by_variant):
    return {key: {v.replace("_", "-"): [{figure: x} for x in values] for v, values in by_variant.items()}}


class Figures(unittest.TestCase):
    def test_best_own_is_the_least_time_and_the_most_throughput(self):
        self.assertEqual(run.best_own("cycle", {"a": 3, "b": 2, "hak": 1}), "b")
        self.assertEqual(run.best_own("rate1", {"a": 3, "b": 2, "hak": 9, "hak-tenants": 10}), "a")
        self.assertIsNone(run.best_own("many.live", {"hak": 1}))

    def test_ratio_is_the_median_of_the_ratios_of_repetitions(self):
        s = samples("cycle", "cpu_us", hak=[1, 30, 2], own=[2, 10, 8])
        self.assertEqual(run.ratio(s, "cycle", "cpu_us", "hak", "own"), 0.5)

    def test_goals(self):
        args = SimpleNamespace(quick=False)
        for value, met in ((95, True), (94, False)):
            s = samples("rate1", "per_s", hak=[value], pooling=[50], pooling_keep_256K=[100])
            (goal,) = run.goals(args, "wasmtime", s)
            self.assertEqual((goal["met"], goal["limit"], goal["value"]), (met, 95, value))
        for value, met in ((30, True), (31, False)):
            s = samples("reset-big", "cpu_us", hak=[value], pooling=[1])
            self.assertEqual([g["met"] for g in run.goals(args, "wasmtime", s)], [met])
        s = samples("cycle", "cpu_us", hak=[69], default=[100])
        self.assertEqual([g["met"] for g in run.goals(args, "wamr", s)], [True])
        (goal,) = run.goals(args, "wasmtime", s)
        self.assertEqual((goal["met"], goal["limit"]), (True, 85))
        s = samples("ready-big", "cpu_us", hak=[1], default=[100])
        self.assertEqual(run.goals(args, "wasmtime", s), [])

    def test_table_has_each_row_once_and_its_ratio(self):
        s = samples("cycle", "cpu_us", hak=[1.0], own=[2.0])
        s.update({"live": {v: [dict(rss_kb=1, mappings=0, left_mb=3, close_us=1)] for v in ("own", "hak")}})
        args = SimpleNamespace(live=1000, many=5)
        text = run.table(s, ["own", "hak"], run.tool.markdown_table, args)
        self.assertIn("| create + request + destroy, CPU us | 2.00 | 1.00 | 0.50 |", text)
        self.assertIn("| 1,000 live: resident MiB left after closing | 3.00 | 3.00 | 1.00 |", text)
        self.assertIn("| 1,000 live: mappings each | 0.00 | 0.00 |  |", text)


class Arguments(unittest.TestCase):
    def test_wrong_ones(self):
        for wrong, text in (
            (["absent"], "unknown row 'absent'"),
            (["-n", "0"], "at least 1"),
            (["--runtimes", "absent"], "unknown runtime 'absent'"),
            (["--build", "/absent"], "no programs in /absent"),
        ):
            done = subprocess.run([sys.executable, HERE / "run.py", *wrong], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
