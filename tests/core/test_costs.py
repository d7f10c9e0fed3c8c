#!/usr/bin/env python3
"""The sentences on cost in the headers, by the instructions that callgrind counts: never by time.

test_costs.py PROGRAM HEADERS, where PROGRAM is built from costs/*.c. Bounds are ratios between a small and a large heap, or
wide multiples of what there is to do, so that compilers and optimization may differ.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = HEADERS = None
CONSTANT = 1600  # what the header means by it
# Other threads of the program may still be on their way to sleep.
PART = re.compile(
    r"^thread: 1\n(?:\n|desc: .*\n)*desc: Trigger: Client Request: (.+)/(\d+)/(\d+)\n(?:.*\n)*?summary: (\d+)", re.M
)


def measured():
    """{what: {size of the heap: instructions a call}}"""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--combine-dumps=yes", "--separate-threads=yes"]
            + [f"--callgrind-out-file={out}", PROGRAM],
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

    def assert_says_constant(self, *whats):
        self.assert_constant(*whats)
        for what in whats:
            with self.subTest(what):
                self.assertLess(max(self.ends(what)[1:]), CONSTANT)

    def assert_steps(self, what, most, least=0):
        """Instructions for each one more of what there is."""
        with self.subTest(what):
            sizes, small, large = self.ends(what)
            step = (large - small) / (sizes[1] - sizes[0])
            self.assertLess(step, most)
            self.assertGreater(step, least)

    def test_owners_of_big_blocks_are_found_in_logarithmic_time(self):
        for what in ("owns big", "ctx_of big", "usable_size big"):
            for context in ("", " shared"):
                with self.subTest(what + context):
                    sizes, small, large = self.ends(what + context)
                    self.assertEqual(sizes, [32, 2048])
                    self.assertLess(large, 3 * small)  # 64 times as many; logarithms: 2.2 times
                    self.assertLess(large, CONSTANT)

    def test_questions_about_one_block_do_not_depend_on_the_heap(self):
        self.assert_says_constant("owns small", "usable_size small", "label_of small", "good_size", "block_size")
        self.assert_says_constant("label_name", "names_of")

    def test_allocation_does_not_depend_on_the_heap(self):
        self.assert_says_constant("calloc", "space_free", "free_if_owned")
        self.assert_constant("aligned", "realloc that moves")  # several calls in one

    def test_live_bytes_and_stats_do_not_depend_on_the_heap(self):
        self.assert_says_constant("live_bytes", "limit", "limit_callback", "quota_used", "tick", "peak_reset")
        self.assert_constant("stats")
        _, small, _ = self.ends("stats")
        self.assertLess(small, 10000)  # a look at each size class
        _, small, large = self.ends("block_pins")
        self.assertLess(max(small, large), 5000)  # a step for each block of a slab

    def test_labels_stats_and_visit_are_linear(self):
        for what, most in (("labels_stats", 60), ("label_stats", 60), ("classes_stats", 60), ("visit", 150), ("check", 80), ("trim", 20)):
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

    def test_a_context_in_a_space_with_retained_pages_costs_the_same_beside_many_others(self):
        self.assert_says_constant("ctx_new", "ctx_destroy")

    def test_bytes_within_takes_a_step_for_each_big_block(self):
        self.assert_steps("bytes_within big", 60)

    def test_spaces_and_structs_cost_the_same_whatever_there_is(self):
        self.assert_says_constant("space_new", "space_delete", "structs")
        self.assert_steps("options_error labels", 250)  # ten bytes of each name

    def test_sums_of_shared_contexts_take_steps_for_each_thread(self):
        for what in ("live_bytes shared", "stats shared", "peak_reset shared", "tick shared", "fork"):
            self.assert_steps(what, 250, 5)
        self.assert_steps("fork child", 600, 5)
        self.assert_steps("first thread heap", 200)
        self.assert_says_constant("thread heap", "limit shared")

    def test_a_thread_ends_at_the_same_cost_whatever_its_heap_holds(self):
        self.assert_constant("thread_done")

    def test_profiles_take_steps_for_each_stack_and_sample(self):
        self.assert_says_constant("profile_marks", "profile_stats", "profile_stop", "profile_reuse")
        self.assert_constant("profile_start", "profile_turn")
        self.assert_steps("profile_mark", 60, 1)
        self.assert_steps("profile_kept", 200, 1)
        for what in ("profile_visit", "profile_diff"):
            self.assert_steps(what, 1000, 1)
        self.assert_steps("profile_grown", 4000, 1)
        self.assert_steps("profile_reset", 200, 1)
        self.assert_steps("profile_stats counted", 100, 1)

    def test_counted_profiles_cost_a_look_up_and_a_few_instructions(self):
        self.assert_says_constant("profile_counts_of", "profile_tally_of", "profile_count pair")
        for cost in self.table["profile_count pair"].values():
            self.assertLess(cost, 60)

    def test_policies_take_steps_for_each_hint(self):
        self.assert_says_constant("policy reading", "policy of ctx", "policy of space")
        for what, most in (
            ("policy_options_error", 400),
            ("policy_hints", 40),
            ("policy_print", 2000),
            ("policy_set", 400),
            ("site_define", 30),
        ):
            self.assert_steps(what, most, 1)
        for what in ("policy_new", "policy_parse", "policy_diff"):
            sizes, _, large = self.ends(what)
            self.assertLess(large, 40 * sizes[1] ** 2)

    def test_learners_and_reports_of_guard_pages_do_not_depend_on_how_many_there_are(self):
        self.assert_says_constant("learner_new", "learner asked", "guard_explain", "guard_frames")
        self.assert_constant("guard_text", "learner_policy")
        self.assert_steps("learner_delete", 100, 1)

    def test_a_learner_takes_a_thousandth_of_a_second_at_most_with_a_tick_in_each(self):
        thousandth = 1e6 / 0.25  # instructions of 0.25 ns
        for size in self.ends("learner second")[0]:
            self.assertLess(self.table["learner second"][size], thousandth / 20)

    def test_what_is_kept_of_the_last_calls_takes_steps_for_each(self):
        self.assert_says_constant("trace_frames")
        for what in ("trace_visit", "trace_visit one", "trace_text"):
            self.assert_steps(what, 100, 1)
        self.assertLess(self.ends("trace_text")[2], 2.2 * self.ends("trace_visit one")[2])

    def test_label_define_compares_with_each_name(self):
        sizes, small, large = self.ends("label_define")
        self.assertGreater(large, small)
        self.assertLess((large - small) / (sizes[1] - sizes[0]), 200)

    def test_a_charge_takes_a_step_for_each_group_above(self):
        sizes, small, large = self.ends("charge in groups")
        self.assertGreater(large, small)
        self.assertLess((large - small) / (sizes[1] - sizes[0]), 400)
        self.assert_says_constant("quota_new", "quota_new_os", "quota_delete")

    def test_each_function_says_its_cost_and_is_measured(self):
        sources = "".join(path.read_text() for path in sorted(Path(__file__).with_name("costs").iterdir()))
        said = contracts()
        self.assertGreater(len(said), 70)
        for name, text in said.items():
            with self.subTest(name):
                self.assertRegex(text, r"\bCost\b|\b[Ff]ast\b")
                if not re.search(r"\bFast\b|Cost: as without|Cost: that of hak_\w+\.", text):
                    self.assertTrue(re.search(rf"\b{name}\(", sources), "no part of costs/ calls it")

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
            self.assertEqual(sizes, [4 << 20, 16 << 20])
            self.assertLess(large, 1.5 * small)  # the heap has 4 times as many blocks


def contracts():
    """{function: the comment above it, or above the ones that it stands with}"""
    found = {}
    for header in sorted(Path(HEADERS).glob("*.h")):
        text = header.read_text()
        for comment, functions in re.findall(r"/\*((?:(?!\*/).)*)\*/\n((?:HAK_API [^;]*;\n)+)", text, re.S):
            for name in re.findall(r"\b(hak_\w+)\(", functions):
                found[name] = " ".join(comment.replace("\n *", " ").split())
        declared = set(re.findall(r"^HAK_API [^;(]*\b(hak_\w+)\(", text, re.M))
        assert declared <= set(found), declared - set(found)
    return found


if __name__ == "__main__":
    PROGRAM, HEADERS = sys.argv.pop(1), sys.argv.pop(1)
    if not shutil.which("valgrind"):
        print("valgrind is missing")
        sys.exit(77)
    unittest.main()
