"""Tests of the driver on made-up samples, where the right figures are known."""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tests/core")]

import instructions  # noqa: E402
from driver import figures, goals, machine, report, sampling, tool  # noqa: E402

import bench  # noqa: E402

CPU = figures.METRICS["random_mixed"][0]
OPS = figures.METRICS["soak"][0]


def run_of(values, **more):
    """A run of random_mixed ws400 from {allocator: [cpu_ns of each repetition]}; None = a failed sample."""
    samples = [
        {
            "allocator": a,
            "row": "random_mixed",
            "case": "ws400",
            "rep": rep,
            **({"cpu_ns": v} if v is not None else {"error": "out of memory"}),
        }
        for a, list_ in values.items()
        for rep, v in enumerate(list_)
    ]
    cases = [{"row": "random_mixed", "case": "ws400", "a": 400, "curve": False}]
    return {"samples": samples, "cases": cases, "system_calls": [], **more}


def published_run():
    """A run with all that a page says of it."""
    run = run_of(
        {"null": [5], "hak": [7], "glibc": [9], "tcmalloc": [6]},
        date="2026-01-02 03:04:05",
        command="scripts/bench",
        seconds=60,
        settings={"repetitions": 1, "cpu": 1},
        versions={"null": "", "hak": "1", "glibc": "2", "tcmalloc": "3"},
        missing={},
        machine={
            "cpu": "X",
            "cpus": 2,
            "hypervisor": "none",
            "distribution": "D",
            "kernel": "6",
            "transparent_huge_pages": "never",
            "load_before": 0,
            "compiler": "cc 1",
            "commit": "abc1234-dirty",
        },
    )
    for one in (*run["samples"], *run["cases"]):
        one["case"] = "ws10k"
    return run


class FiguresTest(unittest.TestCase):
    def setUp(self):
        self.figures = figures.Figures(
            run_of(
                {
                    "null": [5, 50, 5],
                    "null-labels": [6, 6, 6],
                    "hak": [7, 52, 7],
                    "hak-labels": [9, 9, 9],
                    "mimalloc3": [8, 54, 9],
                    "tcmalloc": [30, 30, None],
                    "glibc": [None, None, None],
                }
            )
        )

    def median(self, allocator, net=False):
        return self.figures.median("random_mixed", "ws400", allocator, CPU, net)

    def test_net_is_taken_within_a_repetition(self):
        self.assertEqual(self.median("hak"), 7)
        self.assertEqual(self.median("hak", net=True), 2)
        self.assertEqual(self.median("mimalloc3", net=True), 4)

    def test_labels_have_their_own_baseline(self):
        self.assertEqual(self.median("hak-labels", net=True), 3)

    def test_failed_samples_do_not_count(self):
        self.assertEqual(self.median("tcmalloc"), 30)
        self.assertIsNone(self.median("glibc"))
        self.assertEqual(
            self.figures.errors("random_mixed"),
            [("ws400", "tcmalloc", "out of memory"), ("ws400", "glibc", "out of memory")],
        )

    def test_best_peer_is_neither_null_nor_hakmem(self):
        self.assertEqual(self.figures.best_peer("random_mixed", "ws400", CPU), "mimalloc3")

    def test_advantage_is_the_median_of_ratios(self):
        median, low, high = self.figures.advantage("random_mixed", "ws400", "hak", "mimalloc3", CPU, net=True)
        self.assertEqual((median, low, high), (2, 1.5, 2))

    def test_more_is_better_turns_the_ratio(self):
        run = run_of({})
        run["samples"] = [
            {"allocator": a, "row": "soak", "case": "steady", "rep": 0, "mops": v}
            for a, v in (("hak", 30), ("glibc", 10), ("jemalloc", 15))
        ]
        found = figures.Figures(run)
        self.assertEqual(found.best_peer("soak", "steady", OPS), "jemalloc")
        self.assertEqual(found.advantage("soak", "steady", "hak", "jemalloc", OPS)[0], 2)

    def test_goals_see_a_loss(self):
        verdicts = {goal: met for _, goal, _, met in goals.judge(self.figures)}
        self.assertTrue(verdicts["hak: ns/op >= 1.5x as good as mimalloc3, net of the harness"])
        self.assertFalse(verdicts["hak-labels: ns/op >= 0.95x as good as hak"])

    def test_published_pages(self):
        run = published_run()
        with tempfile.TemporaryDirectory() as directory:
            first = Path(directory) / "README.md"
            first.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
            plots = Path(directory) / "results"
            plots.mkdir()
            (plots / "latency.svg").touch()
            report.publish(run, figures.Figures(run), plots, Path(directory))
            text = first.read_text()
            self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
            self.assertNotIn("old", text)
            self.assertIn("ns/op | 7 | 9 | **6** | `random_mixed/ws10k` |", text)
            self.assertIn("abc1234-dirty (the tree had changes that were not committed)", text)
            page = (Path(directory) / "core.md").read_text()
            self.assertIn("commit abc1234-dirty", page)
            self.assertIn("(results/latency.svg)", page)
            self.assertNotIn("rows.svg", page)
        ((_, times),) = report.against_the_best(run, figures.Figures(run))
        self.assertEqual(times, {"hak": 7 / 6, "glibc": 1.5, "tcmalloc": 1})


class CommitTest(unittest.TestCase):
    def git(self, *command):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", "-C", self.tree, *identity, *command], check=True, capture_output=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        (self.tree / "docs").mkdir()
        (self.tree / "code.c").write_text("1")
        (self.tree / "docs/page.txt").write_text("1")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x")

    def test_what_the_tools_write_does_not_make_a_tree_dirty(self):
        (self.tree / "docs/page.txt").write_text("2")
        commit = machine.commit(self.tree)
        self.assertTrue(machine.publishable(commit), commit)

    def test_a_changed_source_does(self):
        (self.tree / "code.c").write_text("2")
        commit = machine.commit(self.tree)
        self.assertTrue(commit.endswith("-dirty"))
        self.assertFalse(machine.publishable(commit))

    def test_no_commit_is_not_published(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            self.assertFalse(machine.publishable(machine.commit(elsewhere)))

    def test_results_of_a_dirty_tree_are_published_when_asked_for_only(self):
        publish = argparse.Namespace(publish=True, dirty=False)
        with self.assertRaises(SystemExit):
            bench.refuse_dirty("abc-dirty", publish)
        bench.refuse_dirty("abc", publish)
        bench.refuse_dirty("abc-dirty", argparse.Namespace(publish=False, dirty=False))
        bench.refuse_dirty("abc-dirty", argparse.Namespace(publish=True, dirty=True))

    def test_a_published_run_brings_its_plots_and_takes_earlier_ones_away(self):
        documents, file = self.tree / "docs", self.tree / "results/run.json"
        file.parent.mkdir()
        run = published_run() | {"version": 1}
        file.write_text(json.dumps(run))
        (documents / "plots").mkdir()
        (documents / "plots/old.svg").touch()
        (documents / "README.md").write_text(f"{report.BEGIN}\n{report.END}\n")
        with (
            mock.patch.object(bench, "DOCUMENTS", documents),
            mock.patch.object(bench.plots, "all_plots", lambda run, figures, folder: (folder / "rows.svg").touch()),
            mock.patch.object(bench.plots, "overview", lambda times, file: file.touch()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            bench.present(file, argparse.Namespace(publish=False, dirty=True))
            self.assertFalse((documents / "core.md").exists())
            bench.present(file, argparse.Namespace(publish=True, dirty=True))
        self.assertIn("(plots/rows.svg)", (documents / "core.md").read_text())
        self.assertEqual([p.name for p in (documents / "plots").iterdir()], ["rows.svg"])
        self.assertTrue((documents / "overview.svg").exists())

    def test_a_part_of_a_run_is_not_published_later(self):
        documents = mock.patch.object(bench, "DOCUMENTS", self.tree / "docs")
        documents.start()
        self.addCleanup(documents.stop)
        file = self.tree / "run.json"
        for part in ("--quick", "random_mixed", "--allocators hak,glibc --reps 3", "--reps 3 tiny_hot/40"):
            run = published_run() | {"version": 1, "command": f"scripts/bench {part}"}
            file.write_text(json.dumps(run))
            with self.subTest(part), self.assertRaises(SystemExit) as refused:
                bench.present(file, argparse.Namespace(publish=True, dirty=True))
            self.assertIn(f"is of 'scripts/bench {part}': --publish takes a run of all rows", str(refused.exception))
        whole = {"command": "scripts/bench --reps 3 --output x --publish"}
        bench.refuse_part(whole, file, argparse.Namespace(publish=True))
        bench.refuse_part(run, file, argparse.Namespace(publish=False))

    def test_a_published_page_of_a_runtime_needs_a_commit(self):
        page = tool.ROOT / "docs/measurements/lua.md"
        real, machine.commit = machine.commit, lambda source: "abc-dirty"
        try:
            with self.assertRaises(SystemExit):
                tool.check_outputs(argparse.Namespace(markdown=page, dirty=False))
            tool.check_outputs(argparse.Namespace(markdown=page, dirty=True))
            tool.check_outputs(argparse.Namespace(markdown=self.tree / "page.md", dirty=False))
            tool.check_outputs(argparse.Namespace(markdown=None, dirty=False))
        finally:
            machine.commit = real


class SamplingTest(unittest.TestCase):
    def test_every_repetition_runs_all_in_another_order(self):
        seen = []
        real = sampling.sample
        sampling.sample = lambda _, allocator, case: seen.append((case.name, allocator)) or {}
        try:
            case = sampling.Case("random_mixed", "ws400", False, 400)
            sampling.run_all(None, [(case, list("abcdefgh"), 4)], seed=1)
        finally:
            sampling.sample = real
        rounds = [seen[i : i + 8] for i in range(0, 32, 8)]
        self.assertTrue(all(sorted(r) == sorted(rounds[0]) for r in rounds))
        self.assertGreater(len({tuple(r) for r in rounds}), 1)

    def test_what_failed_is_not_tried_again(self):
        seen = []
        real, sampling.sample = (
            sampling.sample,
            lambda _, allocator, case: seen.append(allocator) or ({"error": "x"} if allocator == "a" else {}),
        )
        try:
            sampling.run_all(None, [(sampling.Case("ctx", "b", False, 1), ["a", "b"], 3)], seed=1)
        finally:
            sampling.sample = real
        self.assertEqual((seen.count("a"), seen.count("b")), (1, 3))


class InstructionsTest(unittest.TestCase):
    def test_a_longer_path_fails_and_noise_does_not(self):
        golden = {"alloc small": 20.0}
        self.assertTrue(instructions.compare({"alloc small": 20.4}, golden, 0.02, at_most=False))
        self.assertFalse(instructions.compare({"alloc small": 21.0}, golden, 0.02, at_most=False))
        self.assertFalse(instructions.compare({"alloc small": 18.0}, golden, 0.02, at_most=False))
        self.assertTrue(instructions.compare({"alloc small": 18.0}, golden, 0.02, at_most=True))
        self.assertFalse(instructions.compare({"alloc small": 21.0}, golden, 0.02, at_most=True))
        self.assertFalse(instructions.compare({"new": 1.0}, golden, 0.02, at_most=True))

    def test_a_compiler_without_a_table_is_held_to_ratios(self):
        tables = {"a": {"alloc small": 20.0, "free": 40.0}, "b": {"alloc small": 22.0, "free": 33.0}}
        for measured, good in (
            ({"alloc small": 25.0, "free": 50.0}, True),
            ({"alloc small": 25.0, "free": 70.0}, False),
            ({"alloc small": 30.0, "free": 50.0}, False),
        ):
            table = instructions.by_ratios(tables, measured)
            self.assertEqual(instructions.compare(measured, table, instructions.ROOM, at_most=True), good, measured)


if __name__ == "__main__":
    unittest.main()
