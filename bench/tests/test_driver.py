"""Tests of the driver on made-up samples, where the right figures are known."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import instructions  # noqa: E402
from driver import figures, goals, report, sampling  # noqa: E402

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

    def test_published_part_replaces_only_itself(self):
        with tempfile.TemporaryDirectory() as directory:
            document = Path(directory) / "page.md"
            document.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
            plots = Path(directory) / "results"
            plots.mkdir()
            (plots / "latency.svg").touch()
            report.publish("## Title", plots, document)
            text = document.read_text()
            self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
            self.assertIn("### Title", text)
            self.assertNotIn("old", text)
            self.assertIn("(results/latency.svg)", text)
            self.assertNotIn("rows.svg", text)


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
        self.assertTrue(instructions.compare({"alloc small": 20.4}, golden, 0.02))
        self.assertFalse(instructions.compare({"alloc small": 21.0}, golden, 0.02))
        self.assertFalse(instructions.compare({"alloc small": 18.0}, golden, 0.02))
        self.assertFalse(instructions.compare({"new": 1.0}, golden, 0.02))


if __name__ == "__main__":
    unittest.main()
