"""Tests of the benchmark programs: every row runs, and the options do what they say.

The first argument is the directory of the programs null and hak.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from driver import figures, sampling  # noqa: E402

PROGRAMS = ""


def run(allocator, *arguments):
    return subprocess.run(
        [f"{PROGRAMS}/bench-{allocator}", *arguments], capture_output=True, text=True, timeout=60
    )


def figures_of(allocator, *arguments):
    done = run(allocator, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class ProgramsTest(unittest.TestCase):
    def test_every_row_runs_and_gives_its_figures(self):
        settings = sampling.Settings(PROGRAMS, min(os.sched_getaffinity(0)), 0.002, 0.002)
        for case in sampling.list_cases(PROGRAMS):
            if case.curve:
                continue
            with self.subTest(case=case.name):
                found = sampling.sample(settings, "hak-shared-tls" if case.threads else "hak", case)
                self.assertNotIn("error", found)
                for metric in figures.METRICS[case.row]:
                    if metric is not figures.CALLS:
                        self.assertIn(metric.key, found)

    def test_blocks_cost_memory(self):
        found = figures_of("hak", "battle", "100K")
        self.assertGreater(found["bytes_per_object"], 16)
        self.assertLess(found["after_trim_kib"], found["after_free_kib"])
        self.assertLess(figures_of("null", "battle", "100K")["bytes_per_object"], 4)

    def test_scale(self):
        short, long_ = (
            figures_of("null", "--scale", scale, "tiny_hot", "batch100")["ops"]
            for scale in ("0.001", "0.002")
        )
        self.assertEqual(2 * short, long_)

    def test_minutes(self):
        """The default is two minutes, for which the test's own limit is too short."""
        for minutes in (0.005, 0.03):
            found = figures_of("null", "--minutes", str(minutes), "soak", "steady")
            self.assertGreater(found["wall_ns"] * found["ops"], 0.99 * minutes * 60e9)

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_system_calls_are_counted_between_the_marks(self):
        settings = sampling.Settings(PROGRAMS, 0, 1, 1)
        case = sampling.Case("vm2M", "2M", False, 0)
        calls, ops = sampling.system_calls(settings, "null", case, 0.001, 1)
        self.assertEqual(ops, 20)
        self.assertLess(calls, 10)  # two clocks, two accounts

    def test_bad_arguments_get_one_line(self):
        for arguments in (
            ["--scale", "-1", "mid", "slots256"],
            ["--scale", "x", "mid", "slots256"],
            ["mid"],
            ["no_such_row", "x"],
            ["mid", "no_such_case"],
            ["--minutes", "0", "soak", "steady"],
        ):
            with self.subTest(arguments=arguments):
                done = run("null", *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    PROGRAMS = sys.argv.pop(1)
    unittest.main()
