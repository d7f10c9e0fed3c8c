#!/usr/bin/env python3
"""Reports that were made to cost: names that stand for gigabytes or for hours, lists that are searched."""

import json
import resource
import signal
import string
import subprocess
import unittest

from test_command import COMMAND, Case

DIGITS = string.digits + string.ascii_uppercase
RUST_DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase
SECONDS = 12  # of the processor; HKR_NAMES_SECONDS and the rest, also in a build with sanitizers


def back(number, digits=DIGITS):
    """What stands for an earlier part of a name: _, 0_, ..., Z_, 10_"""
    text = "_"
    if number > 0:
        number -= 1
        while True:
            text, number = digits[number % len(digits)] + text, number // len(digits)
            if number == 0:
                break
    return text


def doubled(levels, name="f", before=""):
    """A function of one type, a pointer to a member, of which each level has the one below it twice."""
    inner = "".join("S" + back(i) for i in range(levels - 1))
    return f"_Z{len(name)}{name}I{before}{'M' * levels}ii{inner}Evv"


def bounded():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Hostile(Case):
    def shown(self, contexts, *command):
        whole = {"schema": "hakmem-report/1", "process": {"pid": 1}, "contexts": contexts}
        done = subprocess.run([COMMAND, *command, "-"], input=json.dumps(whole).encode(), capture_output=True,
                              preexec_fn=bounded, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def names(self, *mangled):
        """What the command makes of them."""
        frames = [{"function": name, "kind": "native"} for name in mangled]
        stacks = [{"frames": [i], "live_blocks": 1, "live_bytes": 1} for i in range(len(frames))]
        lines = self.shown([{"frames": frames, "stacks": stacks}], "folded").splitlines()
        return [line.rpartition(";")[0] for line in lines]

    def test_names_that_are_long_when_they_are_plain(self):
        short, plain = doubled(3), self.names(doubled(3))[0]
        if plain == short:
            self.skipTest("no libiberty")
        self.assertTrue(plain.startswith("f<int int::*"))
        for name in (doubled(16), doubled(30), doubled(200)):
            self.assertEqual(self.names(name, short), [name, plain])

    def test_names_of_rust(self):
        name, last = "_RINvC1a1f", "u"
        for _ in range(60):
            at = len(name) - len("_R")
            name += f"T{last}{last}E"
            last = "B" + back(at, RUST_DIGITS)
        self.assertEqual(self.names(name + "E"), [name + "E"])

    def test_names_that_take_long_and_say_nothing(self):
        # A pack is looked for in all of a type that is only written once it was found.
        slow = [doubled(60, f"f{i}", "Dp") for i in range(400)]
        self.assertEqual(self.names(*slow), slow)

    def test_names_of_rust_that_take_long_and_say_nothing(self):
        # The crate that uses a function is not written, nor is where an implementation stands.
        for name in ("_RNvC1a1bINvC1a1bFGzzzzzz_EuE", "_RNvXINvC1a1bFGzzzzzz_EuEuC1a1c"):
            self.assertEqual(self.names(*[name] * 50, "_RNvC1a1b"), [name] * 50 + ["_RNvC1a1b"])

    def test_time_ends_where_what_starts_the_command_blocks_its_signal(self):
        slow = doubled(60, "f", "Dp")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])
        try:
            self.assertEqual(self.names(slow), [slow])
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def test_many_names(self):
        names = [f"_ZN5space5shelfIiSaIiEE4takeILi{i}EEEvRKi" for i in range(20_000)]
        plain = self.names(*names)
        if plain[0] == names[0]:
            self.skipTest("no libiberty")
        self.assertEqual([name for name in plain if name.startswith("_")], [])

    def test_many_contexts(self):
        text = self.shown([{}] * 80_000, "report")
        self.assertIn("context #80000\n", text)

    def test_many_verdicts(self):
        n = 40_000
        stack = {"frames": [], "live_blocks": 1, "live_bytes": 1}
        stacks = [stack | {"id": i, "label": f"l{i}"} for i in range(n)]
        verdict = {"kind": "leak", "evidence": "e"}
        verdicts = [verdict | {"stack": n - 1 - i, "bytes_a_window": n - i} for i in range(n)]
        text = self.shown([{"frames": [], "stacks": stacks, "verdicts": verdicts}], "report")
        self.assertIn(f"  LEAK?: ?, l{n - 1}: e\n  LEAK?: ?, l{n - 2}: e\n", text)

    def test_names_of_contexts_are_unique(self):
        given = ("a#2", "a", "a", "a#2", "b", "a", "b#2", "b")
        text = self.shown([{"name": name} for name in given], "report")
        names = [line.split()[1] for line in text.splitlines() if line.startswith("context")]
        self.assertEqual(names, ["a#2", "a", "a#3", "a#2#2", "b", "a#4", "b#2", "b#3"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
