"""Names and lines of machine code in reports, which the command reads from debug information."""

import copy
import json
import os
import re
import subprocess

from shim import HELPERS, Case, main

COMMAND = os.environ["HAKMEM_COMMAND"]
MACHINE = os.path.join(HELPERS, "preload_machine")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine.cpp")
MANGLED = {
    "_ZN4shop6BasketIiE4fillEm": "shop::Basket<int>::fill",
    "_ZN4shop6BasketIiE4fillEm.isra.0": "shop::Basket<int>::fill",
    "_RNvNtCs1234_7mycrate3foo3bar": "mycrate::foo::bar",  # of Rust
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",  # of Rust before
    "_ZN4shop": "_ZN4shop",  # broken
    "_start": "_start",
    "_Z" + "N1a" * 1500: "_Z" + "N1a" * 1500,
}


class Machine(Case):
    def report(self):
        done = self.start([MACHINE], "profile=r.json,rate=exact")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("r.json")) as file:
            return json.load(file)

    def hakmem(self, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def stack(self, report):
        """The frames of the large block, from the function main on."""
        path = self.path("changed.json", json.dumps(report))
        (line,) = [x for x in self.hakmem("folded", path).splitlines() if int(x.rpartition(" ")[2]) >= 4_000_000]
        frames = line.rpartition(";")[0].split(";")
        return frames[[f.startswith("main") for f in frames].index(True) :]

    def expected(self):
        with open(SOURCE) as file:
            lines = {m[1]: i for i, m in enumerate(map(re.compile(r".*; // (\w+)$").match, file), 1) if m}
        return [f"{name} ({{}}machine.cpp:{lines[at]})" for name, at in
                (("main", "main"), ("shop::Basket<int>::fill", "fill"), ("grab", "grab"))]

    def test_lines_and_inlined_functions(self):
        frames = self.stack(self.report())
        for frame, expected in zip(frames, self.expected(), strict=True):
            function, file = expected.split(" ({}")
            self.assertTrue(frame.startswith(function + " (") and frame.endswith(file), frame)

    def test_all_forms_have_them(self):
        self.report()
        for command in ("report", "speedscope"):
            with self.subTest(command):
                text = self.hakmem(command, self.path("r.json"))
                self.assertIn("grab", text)
                self.assertIn("machine.cpp", text)

    def test_the_page_has_them(self):
        self.report()
        if "html" not in self.hakmem("--help"):
            self.skipTest("this build has no page: its scripts could not be had")
        text = self.hakmem("html", self.path("r.json"))
        self.assertIn("grab", text)
        self.assertIn("machine.cpp", text)
        self.assertNotIn("_ZN4shop", text.rpartition("hakmem-report/1")[2])

    def without_lines(self, report, what):
        with self.subTest(what):
            frames = self.stack(report)
            self.assertEqual([f.partition(" ")[0] for f in frames], ["main", "shop::Basket<int>::fill"])
            self.assertNotRegex(" ".join(frames), r"cpp:\d")

    def test_another_file_has_no_lines(self):
        report = self.report()
        (context,) = report["contexts"]
        (image,) = [i for i in context["images"] if i["path"] == MACHINE]
        number = context["images"].index(image)
        other = self.path("other")
        os.mkfifo(other)
        broken = self.path("broken")
        with open(MACHINE, "rb") as file, open(broken, "wb") as to:
            to.write(file.read()[: os.path.getsize(MACHINE) // 2])
        for key, value in (("build_id", "00" * 20), ("path", other), ("path", "/nowhere"), ("path", broken),
                           ("path", "/"), ("path", "/usr/bin/env"), ("build_id", "x" * 5000), ("path", 7)):
            changed = copy.deepcopy(report)
            changed["contexts"][0]["images"][number][key] = value
            self.without_lines(changed, f"{key} {str(value)[:40]}")
        for key, value in (("image", 99), ("image", -1), ("image", "0"), ("address", 0), ("address", -5),
                           ("address", 1e300), ("address", 1 << 40)):
            changed = copy.deepcopy(report)
            for frame in changed["contexts"][0]["frames"]:
                frame[key] = value
            self.without_lines(changed, f"{key} {value}")
        for images in (None, [], {}, [None] * 9):
            changed = copy.deepcopy(report)
            changed["contexts"][0]["images"] = images
            self.without_lines(changed, f"images {images}")

    def test_a_stack_as_deep_as_can_be(self):
        report = self.report()
        for depth in (1024, 900):
            for stack in report["contexts"][0]["stacks"]:
                stack["frames"] = (stack["frames"] * 1024)[:depth]
            text = self.hakmem("folded", self.path("deep.json", json.dumps(report)))
            frames = max(line.count(";") for line in text.splitlines())
            self.assertEqual((frames > depth, "grab" in text), (depth < 1000, depth < 1000))
            self.assertLessEqual(frames, 1024)

    def test_names(self):
        report = self.report()
        report["contexts"][0]["frames"] = [{"function": name, "kind": "native"} for name in MANGLED]
        report["contexts"][0]["frames"].append({"function": "_ZN1a1bEv", "kind": "interpreter"})
        report["contexts"][0]["stacks"] = [
            {"frames": [i], "live_blocks": 1, "live_bytes": 1000 + i} for i in range(len(MANGLED) + 1)
        ]
        text = self.hakmem("folded", self.path("names.json", json.dumps(report)))
        found = {int(x.rpartition(" ")[2]) - 1000: x.rpartition(";")[0] for x in text.splitlines()}
        self.assertEqual([found[i][:1000] for i in sorted(found)], [*(v.replace(";", ":")[:1000] for v in MANGLED.values()), "_ZN1a1bEv"])


if __name__ == "__main__":
    main()
