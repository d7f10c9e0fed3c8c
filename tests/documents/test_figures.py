"""Figures of README.md are those of docs/measurements, of one commit: test_figures.py SOURCE. With --update it writes them."""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
README = SOURCE / "README.md"
MEASURED = (SOURCE / "docs/measurements/README.md").read_text()
WHEN = re.compile(r"^Measured (\d{4}-\d\d-\d\d)[^,]*, commit (\w+), by (`[^`]+`) on ([^,]+, \d+ CPUs)", re.M)


def rows(text):
    """The rows of the table of allocators by their first cell."""
    table = re.search(r"^\|\s+\| unit \|.*?(?=\n\n)", text, re.M | re.S)[0]
    return {line.split("|")[1].strip(): line for line in table.splitlines()}


def measured():
    """The rows of the measurements without their last cell, the name in the benchmarks."""
    return {first: line.rsplit("|", 2)[0].rstrip() + " |" for first, line in rows(MEASURED).items()}


def when():
    day, commit, command, machine = WHEN.search(MEASURED).groups()
    return f"Measured {day}, commit {commit}, by {command} on {machine}."


def update():
    text, known = README.read_text(), measured()
    for first, line in rows(text).items():
        if first in known and not line.startswith("|---"):
            text = text.replace(line, known[first])
    README.write_text(re.sub(r"^Measured \d.*?\.$", lambda _: when(), text, flags=re.M | re.S))


class Readme(unittest.TestCase):
    def test_its_figures_are_those_of_the_measurements(self):
        known, shown = measured(), rows(README.read_text())
        self.assertGreater(len(shown), 7)
        for first, line in shown.items():
            if not first.startswith("--"):
                self.assertEqual(line, known.get(first), "test_figures.py SOURCE --update mends that")

    def test_they_are_of_one_commit(self):
        text = " ".join(README.read_text().split())
        self.assertIn(f" {when()} ", text)
        self.assertEqual(len(re.findall(r"\bcommit [0-9a-f]{7,}", text)), 1)

    def test_the_size_of_a_small_heap(self):
        core = (SOURCE / "docs/measurements/core.md").read_text()
        size = re.search(r"^\| ctx live10000 \| hak: KiB/context <= \S+ \| ([\d.]+) \|", core, re.M)[1]
        self.assertIn(f"take {float(size):.2f} KiB apiece", README.read_text())
        for peer in "mimalloc2", "mimalloc3":
            self.assertIn(f"{peer}, live10000: bench: more than 4 GiB resident", core)

    def test_it_is_short(self):
        self.assertLessEqual(len(README.read_text().splitlines()), 140)


if sys.argv[2:] == ["--update"]:
    update()
elif __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
