#!/usr/bin/env python3
"""hakmem diff: what is compared with what, and which rows there is room for."""

import copy
import math
import random
import re
import unittest

from test_command import Case


def grown(**changes):
    """Two reports of functions, each of which has changed by so many bytes."""
    reports = []
    for when in (0, 1):
        frames = [{"function": name, "kind": "native"} for name in changes]
        stacks = [
            {"frames": [i], "live_blocks": 1, "live_bytes": 10**6 + when * change}
            for i, change in enumerate(changes.values())
        ]
        process = {"command": ["program"], "pid": 1}
        context = {"name": "c", "frames": frames, "stacks": stacks}
        reports.append({"schema": "hakmem-report/1", "process": process, "contexts": [context]})
    return reports


MEAN = 64 << 10


def drawn(rng, blocks, n):
    """What a sampled profile says of so many blocks of n bytes: blocks, bytes, their variance."""
    weight = -1 / math.expm1(-n / MEAN)
    samples = sum(rng.random() * weight < 1 for _ in range(blocks))
    return samples * weight, samples * weight * n, samples * n * n * weight * (weight - 1)


def sampled(pid, sites):
    """A report of sites, each with what was drawn of its live blocks and of those that are gone."""
    stacks = [
        {
            "frames": [i],
            "live_blocks": live[0],
            "live_bytes": live[1],
            "live_bytes_error": math.sqrt(live[2]),
            "alloc_blocks": live[0] + gone[0],
            "alloc_bytes": live[1] + gone[1],
            "alloc_bytes_error": math.sqrt(live[2] + gone[2]),
        }
        for i, (live, gone) in enumerate(sites.values())
    ]
    context = {
        "name": "c",
        "frames": [{"function": name, "kind": "native"} for name in sites],
        "stacks": stacks,
        "profile": {"mode": "sampled", "mean_bytes": MEAN, "started_ns": 1000},
    }
    return {"schema": "hakmem-report/1", "process": {"command": ["p"], "pid": pid}, "contexts": [context]}


NONE = (0, 0, 0)


class Noise(Case):
    def rows(self, before, after, *options):
        """Lines of what changed for certain, and of what is within the error."""
        text = self.text("diff", *options, self.write("b.json", before), self.write("c.json", after))
        table = text.split(" site\n")[1].split("  change ")[0]
        sure, _, noise = table.partition("within the error of the samples:\n")
        return [[line for line in part.splitlines() if re.search(r"\d B|iB", line)] for part in (sure, noise)]

    def test_a_program_that_runs_twice_has_no_row_above_its_noise(self):
        rng = random.Random(5)
        true = {f"site{i}": (rng.choice((1, 3, 30, 300, 3000)), rng.choice((100, 3000, 90000))) for i in range(300)}
        for by in ("live", "alloc"):
            for turn in range(3):
                reports = [sampled(pid, {k: (drawn(rng, *v), NONE) for k, v in true.items()}) for pid in (1, 2)]
                sure, noise = self.rows(*reports, "-n", 1000, "-b", by)
                self.assertEqual(sure, [], (by, turn))
                self.assertGreater(len(noise), 50)

    def test_what_the_samples_do_not_explain_stands_above(self):
        rng = random.Random(6)
        sites = {f"site{i}": (drawn(rng, 500, 3000), NONE) for i in range(100)}
        again = {f"site{i}": (drawn(rng, 500, 3000), NONE) for i in range(100)}
        again["new"] = (drawn(rng, 1000, 3000), NONE)
        again["site7"] = (drawn(rng, 2500, 3000), NONE)
        sites["gone"] = (drawn(rng, 1500, 3000), NONE)
        sure, noise = self.rows(sampled(1, sites), sampled(2, again), "-n", 1000)
        self.assertEqual([line.split()[-1] for line in sure], ["site7", "new", "gone"])
        self.assertGreater(len(noise), 80)  # of 99: some were drawn as often
        change, error = re.match(r" +\+([\d.]+) MiB +([\d.]+) (?:KiB|MiB) ", sure[0]).groups()
        self.assertLess(abs(float(change) - 2000 * 3000 / 2**20), 2.5)
        # Poisson: the root of what there is times the distance of samples.
        expected = math.sqrt(3000 * 3000 * MEAN) / 1024
        self.assertLess(abs(float(error) - expected) / expected, 0.2)

    def test_reports_of_one_run_share_the_samples_of_what_lives(self):
        rng = random.Random(7)
        old, more = drawn(rng, 20000, 3000), drawn(rng, 700, 3000)
        both = tuple(a + b for a, b in zip(old, more, strict=True))
        for pid, certain in ((1, True), (2, False)):
            sure, noise = self.rows(sampled(1, {"f": (old, NONE)}), sampled(pid, {"f": (both, NONE)}))
            self.assertEqual((len(sure), len(noise)), (certain, not certain))
        # What was freed and made anew errs, though as much lives.
        sure, noise = self.rows(sampled(1, {"f": (old, NONE)}), sampled(1, {"f": (both, old)}))
        self.assertEqual((len(sure), len(noise)), (0, 1))


class Diff(Case):
    def test_what_grew_comes_first(self):
        after = copy.deepcopy(self.report)
        context = after["contexts"][0]
        # Other numbers for the same frames: they are compared by name.
        context["frames"] = context["frames"][::-1]
        for one in context["stacks"]:
            one["frames"] = [3 - f for f in one["frames"]]
        context["stacks"][1]["live_bytes"] += 1 << 20
        context["stacks"][0]["live_bytes"] -= 1 << 19
        context["labels"][1]["live_bytes"] += 1 << 20
        context["stats"]["live_bytes"] += 1 << 19
        text = self.text("diff", self.file, self.write("b.json", after))
        grew, shrank = text.index("+1.00 MiB"), text.index("-512.00 KiB")
        self.assertLess(grew, shrank)
        self.assertRegex(text, r"\+1\.00 MiB +512\.00 KiB +292\.97 KiB +1\.29 MiB +\+0  string +main chunk")
        self.assertIn("live: 4.10 MiB -> 4.60 MiB (+512.00 KiB)", text)
        self.assertEqual(text.count("parse"), 1)

    def test_rows_that_changed_alike_keep_the_order_of_the_report(self):
        names = [f"site{i}" for i in random.Random(8).sample(range(1000), 700)]
        before, after = grown(**dict.fromkeys(names, 1 << 20))
        text = self.text("diff", "-n", 1000, self.write("b.json", before), self.write("c.json", after))
        self.assertEqual(re.findall(r"site\d+$", text, re.M), names)
        text = self.text("report", "-n", 1000, self.file_of(after))
        self.assertEqual(re.findall(r"site\d+$", text, re.M), names)

    def file_of(self, report):
        return self.write("d.json", report)

    def test_nothing_changed(self):
        text = self.text("diff", self.file, self.file)
        self.assertIn("no stack changed", text)
        self.assertIn("no label changed", text)

    def compared(self, before, after, *options):
        """The names of the sites, and what is said of the rows that are left out."""
        text = self.text("diff", *options, self.write("b.json", before), self.write("c.json", after))
        lines = text.split(" site\n")[1].split("\n\n")[0].splitlines()
        rest = re.findall(r"and (\d+) more", text)
        return [line.split()[-1] for line in lines if " more" not in line], [int(n) for n in rest]

    def test_as_many_rows_as_were_asked_for(self):
        changes = {f"up{i}": i for i in range(1, 101)} | {f"down{i}": -i for i in range(1, 101)}
        ups, downs = [f"up{i}" for i in range(100, 0, -1)], [f"down{i}" for i in range(1, 101)]
        both = grown(**changes)
        for top, first, last in ((20, 10, 10), (7, 4, 3), (1, 1, 0), (199, 100, 99), (300, 100, 100)):
            rows, rest = self.compared(*both, "-n", top)
            self.assertEqual(rows, ups[:first] + downs[len(downs) - last :], top)
            self.assertEqual(rest, [200 - top] if top < 200 else [])
        few = grown(**changes | {f"down{i}": 0 for i in range(1, 98)})
        self.assertEqual(self.compared(*few, "-n", 20), (ups[:17] + downs[97:], [83]))
        shrunk = grown(**{name: n for name, n in changes.items() if n < 0})
        self.assertEqual(self.compared(*shrunk, "-n", 1), (["down100"], [99]))

    def test_names_that_begin_alike(self):
        before, after = grown(first=3000, second=-2000)
        for report in (before, after):
            for frame in report["contexts"][0]["frames"]:
                frame["function"] = 450 * "N" + frame["function"]
        text = self.text("diff", self.write("b.json", before), self.write("c.json", after))
        self.assertIn("+2.93 KiB", text)
        self.assertIn("-1.95 KiB", text)

    def test_frames_that_differ_in_one_member(self):
        for member, values in (("file", ("a.c", "b.c")), ("line", (1, 2)), ("module", ("/lib/a", "/lib2/a"))):
            before, after = grown(first=3000, second=-2000)
            for report in (before, after):
                for frame, value in zip(report["contexts"][0]["frames"], values, strict=True):
                    frame |= {"function": "f", "file": "a.c", member: value}
            text = self.text("diff", self.write("b.json", before), self.write("c.json", after))
            self.assertIn("+2.93 KiB", text, member)
            self.assertIn("-1.95 KiB", text, member)

    def test_texts_that_end_as_others_begin(self):
        before, after = grown(first=3000, second=-2000)
        for report in (before, after):
            one, two = report["contexts"][0]["frames"]
            one |= {"function": "f", "file": "g\nh"}
            two |= {"function": "f\ng", "file": "h"}
        text = self.text("diff", self.write("b.json", before), self.write("c.json", after))
        self.assertIn("+2.93 KiB", text)
        self.assertIn("-1.95 KiB", text)

    def test_labels_are_of_what_lives(self):
        after = copy.deepcopy(self.report)
        after["contexts"][0]["labels"][1]["live_bytes"] += 1 << 20
        after["contexts"][0]["stacks"][1]["alloc_bytes"] += 1 << 30
        text = self.text("diff", "-b", "alloc", self.file, self.write("b.json", after))
        stacks, labels = text.split("label, live")
        self.assertIn("+1.00 GiB", stacks)
        self.assertRegex(labels, r"\+1\.00 MiB .* string")


if __name__ == "__main__":
    unittest.main(verbosity=2)
