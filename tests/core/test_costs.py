#!/usr/bin/env python3
"""The sentences on cost in hakmem.h, by the instructions that callgrind counts: never by time.

test_costs.py PROGRAM, where PROGRAM is built from costs.c. Bounds are ratios between a small and a large heap, or
wide multiples of what there is to do, so that compilers and optimization may differ.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = None
PART = re.compile(r"^desc: Trigger: Client Request: (.+)/(\d+)/(\d+)\n(?:.*\n)*?summary: (\d+)", re.M)


def measured():
    """{what: {size of the heap: instructions a call}}"""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--combine-dumps=yes", f"--callgrind-out-file={out}", PROGRAM],
            check=True,
        )
        text = out.read_text()
    table = {}
    for what, size, calls, total in PART.findall(text):
        table.setdefault(what, {})[int(size)] = int(total) / int(calls)
    return table


class Costs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = measured()

    def ends(self, what):
        sizes = sorted(self.table[what])
        self.assertEqual(len(sizes), 2)
        small, large = (self.table[what][size] for size in sizes)
        self.assertGreater(small, 0)
        return sizes, small, large

    def assert_constant(self, *whats):
        for what in whats:
            with self.subTest(what):
                _, small, large = self.ends(what)
                self.assertLess(large, 1.25 * small + 10)

    def test_owners_of_big_blocks_are_found_in_logarithmic_time(self):
        for what in ("owns big", "ctx_of big", "usable_size big"):
            for context in ("", " shared"):
                with self.subTest(what + context):
                    sizes, small, large = self.ends(what + context)
                    self.assertEqual(sizes, [32, 2048])
                    self.assertLess(large, 3 * small)  # 64 times as many; logarithms: 2.2 times
                    self.assertLess(large, 1500)

    def test_questions_about_one_block_do_not_depend_on_the_heap(self):
        self.assert_constant("owns small", "usable_size small", "label_of small", "good_size")

    def test_live_bytes_and_stats_do_not_depend_on_the_heap(self):
        self.assert_constant("live_bytes", "stats", "limit", "quota_used", "tick")
        _, small, _ = self.ends("stats")
        self.assertLess(small, 10000)  # a look at each size class

    def test_labels_stats_and_visit_are_linear(self):
        for what, most in (("labels_stats", 60), ("visit", 150)):
            with self.subTest(what):
                sizes, _, large = self.ends(what)
                self.assertLess(large / sizes[1], most)

    def test_flush_and_retire_step_through_what_is_at_hand_and_slabs_not_through_blocks(self):
        for what in ("flush", "retire"):
            with self.subTest(what):
                sizes, small, large = self.ends(what)
                slabs = sizes[1] * 64 / 16384
                self.assertLess(large - small, 200 * slabs)

    def test_destroy_takes_no_step_for_a_small_block(self):
        sizes, small, large = self.ends("destroy")
        slabs = (sizes[1] - sizes[0]) * 64 / 16384
        self.assertLess(large - small, 1000 * slabs)
        self.assertLess(large - small, 4 * (sizes[1] - sizes[0]))

    def test_a_context_in_a_warm_space_costs_the_same_beside_many_others(self):
        self.assert_constant("ctx_new", "ctx_destroy")
        self.assertLess(self.ends("ctx_new")[1], 4000)

    def test_label_define_compares_with_each_name(self):
        sizes, small, large = self.ends("label_define")
        self.assertGreater(large, small)
        self.assertLess((large - small) / (sizes[1] - sizes[0]), 200)

    def test_a_charge_takes_a_step_for_each_group_above(self):
        sizes, small, large = self.ends("charge in groups")
        self.assertGreater(large, small)
        self.assertLess((large - small) / (sizes[1] - sizes[0]), 400)

    def test_a_refusal_costs_the_same_each_time_and_whatever_the_heap(self):
        for how in ("packed", "slabs", "shared"):
            for size in (16, 800, 40000):
                with self.subTest(how, size=size):
                    self.assert_constant(f"refused {size} {how}", f"refused {size} {how} often")
                    first = self.ends(f"refused {size} {how}")[1]
                    self.assertLess(self.ends(f"refused {size} {how} often")[1], 1.01 * first)
                    self.assertLess(first, 30000)  # some looks at each size class

    def test_what_is_left_at_the_limit_is_handed_out_whatever_the_heap(self):
        for how in ("packed", "slabs", "shared"):
            sizes, small, large = self.ends(f"from the rest {how}")
            self.assertEqual(sizes, [1 << 20, 4 << 20])
            self.assertLess(large, 1.5 * small)  # the heap has 4 times as many blocks


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if not shutil.which("valgrind"):
        print("valgrind is missing")
        sys.exit(77)
    unittest.main()
