#!/usr/bin/env python3
"""At which frame a stack stands: the innermost line of an interpreter, or the function that asked for the memory."""

import unittest

import example
from test_command import Case


def report(frames, stacks):
    """Each stack is the numbers of its frames and its live bytes."""
    whole = example.report()
    context = whole["contexts"][0]
    context["frames"] = frames
    context["stacks"] = [example.stack(i + 1, numbers, "a", live) for i, (numbers, live) in enumerate(stacks)]
    context["verdicts"] = []
    return whole


def native(*names):
    return [{"function": name, "kind": "native", "module": "/usr/bin/redis"} for name in names]


class Sites(Case):
    def sites(self, frames, stacks):
        text = self.text("report", self.write("b.json", report(frames, stacks)), "-n", 1000)
        return [line.split(" a  ")[1].strip() for line in text.split(" site\n")[1].split("\n\n")[0].splitlines()]

    def test_a_function_in_c_has_the_line_of_its_call(self):
        frames = [
            {"function": "malloc", "kind": "native"},
            {"function": "concat", "kind": "interpreter"},
            {"function": "join", "file": "a.lua", "line": 7, "kind": "interpreter"},
            {"function": "main chunk", "file": "a.lua", "line": 9, "kind": "interpreter"},
        ]
        self.assertEqual(self.sites(frames, [([0, 1, 2, 3], 30), ([0, 1, 3], 20), ([0, 1], 10)]),
                         ["join (a.lua:7)", "main chunk (a.lua:9)", "concat"])

    def test_wrappers_have_the_line_of_who_asks(self):
        # malloc < zmalloc < sdsnewlen < many commands; and one that asks malloc itself
        frames = native("malloc", "zmalloc", "sdsnewlen", "own", *(f"command{i}" for i in range(20)))
        stacks = [([0, 1, 2, 4 + i], 1000 - i) for i in range(20)]
        stacks += [([0, 1, 4], 500), ([0, 1, 5], 499), ([0, 3, 4], 400)]
        sites = [site.split(" ")[0] for site in self.sites(frames, stacks)]
        self.assertEqual(sites, [f"command{i}" for i in range(20)] + ["command0", "command1", "own"])

    def test_a_function_with_one_caller_or_few_stacks_is_no_wrapper(self):
        frames = native("zmalloc", "make", "f", "g", "h")
        self.assertEqual([s.split(" ")[0] for s in self.sites(frames, [([0, 1, 2], 30), ([0, 1, 2, 3], 20)])],
                         ["zmalloc", "zmalloc"])
        stacks = [([1, 2], 40), ([1, 3], 30), ([1, 4], 20), ([1, 2, 3], 10)]
        self.assertEqual([s.split(" ")[0] for s in self.sites(frames, stacks)], ["make"] * 4)

    def test_nothing_but_wrappers(self):
        frames = native("zmalloc", "xmalloc", "f", "g")
        stacks = [([0, 1], 30), ([0, 2], 20), ([1, 2], 10), ([1, 3], 5)]
        self.assertEqual([s.split(" ")[0] for s in self.sites(frames, stacks)], ["zmalloc", "f", "f", "g"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
