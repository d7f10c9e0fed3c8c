#!/usr/bin/env python3
"""hakmem policy merge: what many hosts have learned, as one policy."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

COMMAND = os.environ["HAKMEM_COMMAND"]
HEAD = "hakmem-policy 1\n"


def undone(cost, without, windows, fault=800, price=50):
    return (
        f"undone mode balanced from fast cost {cost} without {without} windows {windows} price {price} fault {fault}\n"
    )


class Merge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, *words):
        return subprocess.run([COMMAND, "policy", *map(str, words)], capture_output=True, text=True, timeout=60, check=False)

    def merge(self, *texts, options=()):
        files = []
        for i, text in enumerate(texts):
            files.append(self.folder / f"{i}.policy")
            files[-1].write_text(HEAD + text)
        return self.run_command("merge", *options, *files)

    def merged(self, *texts):
        done = self.merge(*texts)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith(HEAD))
        return done.stdout[len(HEAD) :]

    def test_one_file_is_itself(self):
        text = "name web\nmode fast\nexpected_bytes 100M\nslab_sizes 74\nprice 7\nmemory 64M\n" + undone(9, 1, 3)
        text += "room 40 label table\nroom 7 site a.c:3\n"
        self.assertEqual(self.merged(text), text)

    def test_the_mode_with_the_most_evidence_wins_and_brings_its_numbers(self):
        fast = "mode fast\nexpected_bytes {}M\n"
        two = self.merged("mode balanced\nexpected_bytes 7M\n", "mode balanced\n", fast.format(90) + undone(600, 100, 3))
        self.assertEqual(two, fast.format(90) + undone(600, 100, 3))
        self.assertEqual(self.merged("mode balanced\n", "mode lean\n", "mode balanced\n"), "mode balanced\n")

    def test_numbers_are_medians_and_what_few_say_is_not_said(self):
        texts = [f"mode fast\nexpected_bytes {n}M\n" for n in (100, 900, 120)]
        self.assertEqual(self.merged(*texts), "mode fast\nexpected_bytes 120M\n")
        self.assertEqual(self.merged(texts[0], "mode fast\n", "mode fast\n"), "mode fast\n")
        # A host that has tried more weighs more.
        self.assertIn("expected_bytes 900M\n", self.merged(texts[0], texts[2], texts[1] + undone(5, 1, 9)))

    def test_sizes_are_those_of_three_hosts_in_four(self):
        texts = [f"mode fast\nslab_sizes {n}\n" for n in (1 | 2 | 8, 1 | 2, 1 | 4, 1 | 2)]
        self.assertEqual(self.merged(*texts), "mode fast\nslab_sizes 3\n")

    def test_what_was_undone_is_a_mean_by_windows(self):
        done = self.merged("mode fast\n" + undone(600, 100, 3), "mode fast\n" + undone(1000, 200, 9, fault=1000))
        self.assertEqual(done, "mode fast\n" + undone(900, 175, 12, fault=950))

    def test_what_another_machine_saw_is_left_out_and_told(self):
        most, others = "mode fast\n" + undone(600, 100, 9), "mode fast\n" + undone(9, 1, 3, fault=4000)
        why = "what was undone there is left out: prices or costs of page faults differ"
        # Which machine counts depends on the evidence, and not on the order of the files.
        for texts, first, more in (
            ((most, others), 1, ""),
            ((others, most), 0, ""),
            ((others, most, others), 0, "; so is that of 1 other"),
            ((most, others, others.replace("4000", "100"), others.replace("price 50", "price 5")), 1, "; so is that of 2 others"),
        ):
            with self.subTest(first=first, more=more):
                done = self.merge(*texts)
                self.assertEqual(done.stdout, HEAD + most)
                self.assertEqual(done.stderr, f"hakmem: {self.folder}/{first}.policy: {why}{more}\n")

    def test_a_thousand_files(self):
        texts = [f"mode fast\nexpected_bytes {i + 1}M\n" + undone(600, 100, 3, fault=4000 if i % 3 else 300) for i in range(1000)]
        done = self.merge(*texts)
        self.assertEqual(done.stdout, HEAD + "mode fast\nexpected_bytes 500M\n" + undone(600, 100, 1998, fault=4000))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("so is that of 333 others", done.stderr)

    def test_a_file_that_is_cut_off(self):
        whole = HEAD + "mode fast\nexpected_bytes 339M\n"
        cut = self.folder / "cut"
        cut.write_text(whole[:-3])
        for words in (("check", cut), ("merge", cut)):
            done = self.run_command(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Ahakmem: [^\n]*cut:3: the last line has no end, the file seems to be cut off\n\Z")

    def test_a_pipe_into_which_nobody_writes(self):
        os.mkfifo(self.folder / "pipe")
        done = self.run_command("check", self.folder / "pipe")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("pipe:1: 'hakmem-policy 1' expected\n", done.stderr)

    def test_hints_come_together(self):
        done = self.merged("room 10 label a\nroom 5 site x\n", "room 30 label a\nroom 9 label x\n")
        self.assertEqual(done, "room 30 label a\nroom 5 site x\nroom 9 label x\n")

    def test_prices_that_differ_and_files_that_are_none(self):
        done = self.merge("price 5\n", "price 50\n")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"hakmem: {self.folder}/1.policy: another price or budget than in the first file\n")
        done = self.merge("mode fast\n", "mode quick\n")
        self.assertEqual((done.returncode, done.stderr), (1, f"hakmem: {self.folder}/1.policy:2: mode: 'quick' is none\n"))
        done = self.run_command("merge", "/nosuch")
        self.assertEqual((done.returncode, done.stderr), (1, "hakmem: /nosuch: No such file or directory\n"))
        for words in ((), ("merge",), ("mix", "x")):
            done = self.run_command(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), words)

    def test_it_goes_to_a_file_that_is_whole(self):
        out = self.folder / "out"
        self.assertEqual(self.merge("mode fast\n", options=("-o", out)).returncode, 0)
        self.assertEqual(out.read_text(), HEAD + "mode fast\n")
        self.assertEqual(self.merge("mode quick\n", options=("-o", out)).returncode, 1)
        self.assertEqual(out.read_text(), HEAD + "mode fast\n")


if __name__ == "__main__":
    unittest.main()
