"""What a program maps itself: counted for what it touches, with its stack, and under a limit."""

import json
import os
import re
import subprocess

from shim import HELPERS, Case, main

PROGRAM = os.path.join(HELPERS, "preload_mapped")


# Of the context's tables, which are told as those of any context.
NOT_TOLD = {"metadata_bytes", "os_calls", "cached_bytes", "released_bytes", "retained_bytes", "hard_limit"}


class Mapped(Case):
    def test_without_a_limit_all_is_granted(self):
        done = self.start([PROGRAM], f"profile={self.path('p.json')}")
        self.assertEqual((done.stderr, done.returncode, done.stdout.count("granted"), done.stdout.count("\n")), ("", 0, 8, 8))
        with open(self.path("p.json")) as file:
            report = json.load(file)
        _, mapped = report["contexts"]
        self.assertEqual(mapped["name"], "mapped")
        live = {}
        for stack in mapped["stacks"]:
            names = [mapped["frames"][n]["function"] for n in stack["frames"]]
            live[names[0]] = live.get(names[0], 0) + stack["live_bytes"]
        self.assertEqual(live.get("map", 0), 0)  # what was touched of it is given back
        self.assertEqual(sum(live.values()), 20 << 20)
        parts = report["memory"]["parts"]
        self.assertTrue(any(p["name"].startswith("mapped by ") and p["bytes"] == 20 << 20 for p in parts), parts)

    def test_the_page_of_the_format_has_its_members(self):
        """Neither more nor less; its bytes are none of the heap's."""
        self.start([PROGRAM], f"profile={self.path('p.json')}")
        with open(self.path("p.json")) as file:
            heap, mapped = json.load(file)["contexts"]
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/internals/report-format.md")) as file:
            section = file.read().partition("\n### The context `mapped`\n")[2].partition("\n### ")[0]
        rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]
        members = {name for first, _ in rows for name in re.findall(r"`(\w+)`", first)}
        self.assertEqual(members, mapped.keys() - {"name"})
        (about_stats,) = (text for first, text in rows if "stats" in first)
        stats = mapped["stats"]
        self.assertEqual(set(re.findall(r"`(\w+_\w+)`", about_stats)), {name for name, n in stats.items() if n > 0} - NOT_TOLD)
        self.assertEqual((stats["live_bytes"], stats["peak_bytes"], stats["committed_bytes"]), (20 << 20,) * 3)
        self.assertGreater(stats["reserved_bytes"], 20 << 20)
        self.assertEqual(mapped["profile"]["mode"], "counted")
        self.assertEqual(sum(label["live_bytes"] for label in mapped["labels"]), stats["live_bytes"])
        self.assertEqual(sum(label["live_blocks"] for label in mapped["labels"]), stats["live_blocks"])
        self.assertLess(heap["stats"]["live_bytes"], 20 << 20)

    def windows(self, what):
        done = self.start([PROGRAM, what], f"profile={self.path('p.json')},rate=4K,window=100ms")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        with open(self.path("p.json")) as file:
            _, mapped = json.load(file)["contexts"]
        self.assertIn(mapped["profile"]["window_ns"], [93_750_000 << n for n in range(8)])
        self.assertGreaterEqual(len(mapped["marks"]), 6)
        live = [mark["live_bytes"] for mark in mapped["marks"]]
        self.assertEqual(live, sorted(live))
        self.assertGreater(live[-1], 20 << 20)
        self.assertLessEqual(live[-1], mapped["stats"]["live_bytes"])
        self.assertFalse(any("resident_bytes" in mark for mark in mapped["marks"]))
        sums = [sum(row) for row in zip(*(history["live"] for history in mapped["histories"]), strict=True)]
        self.assertEqual(sums, live)
        return mapped

    def test_windows_and_what_grows(self):
        mapped = self.windows("grows")
        functions = {s["id"]: {mapped["frames"][n]["function"] for n in s["frames"]} for s in mapped["stacks"]}
        (verdict,) = mapped["verdicts"]
        self.assertIn("map_more", functions[verdict["stack"]])
        self.assertEqual(verdict["kind"], "leak", verdict)
        command = os.environ.get("HAKMEM_COMMAND")
        if command:
            shown = subprocess.run([command, "report", self.path("p.json")], capture_output=True, text=True, check=True).stdout
            self.assertRegex(shown, r"\n  LEAK\?: (map_more|run_steps|by_steps)\b[^\n]*: grew by \d+\.\d MiB over \d+ windows, ")

    def test_windows_begin_with_those_of_the_heap(self):
        (verdict,) = self.windows("touches")["verdicts"]
        self.assertEqual(verdict["kind"], "leak", verdict)

    def test_without_windows(self):
        self.start([PROGRAM, "grows"], f"profile={self.path('p.json')},rate=4K,window=off")
        with open(self.path("p.json")) as file:
            _, mapped = json.load(file)["contexts"]
        self.assertNotIn("marks", mapped)
        self.assertEqual(mapped["verdicts"], [])

    def test_a_limit_holds_for_it(self):
        done = self.start([PROGRAM], "limit=60M")
        said = dict(line.split() for line in done.stdout.splitlines())
        granted = {name for name, what in said.items() if what == "granted"}
        self.assertEqual(granted, {"reserved", "wide", "block", "again"}, done.stderr)
        self.assertRegex(
            done.stderr, r"^hakmem: HAKMEM: the limit refused \d+\.0 MiB that the program wanted to map itself, past malloc\n$"
        )

    def test_memory_that_children_would_share_counts_too(self):
        done = self.start([PROGRAM, "shared"], "limit=60M")
        said = dict(line.split() for line in done.stdout.splitlines())
        granted = {name for name, what in said.items() if what == "granted"}
        self.assertEqual((granted, len(said)), ({"shared", "again"}, 5), done.stderr)

    def test_what_is_mapped_and_not_touched_is_no_reason_to_refuse(self):
        for function in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign"):
            with self.subTest(function):
                done = self.start([PROGRAM, function], "limit=45M")
                self.assertEqual((done.stdout, done.stderr, done.returncode), (f"wide granted\n{function} granted\n", "", 0))


if __name__ == "__main__":
    main()
