#!/usr/bin/env python3
"""The reports of the examples in C, which no binding writes: as the schema has them, and as the command shows them."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
COMMAND = os.environ["HAKMEM_COMMAND"]


def valid(report):
    try:
        import fastjsonschema
    except ImportError:
        return report
    return fastjsonschema.compile(json.loads((SOURCE / "bindings/report/report.schema.json").read_text()))(report)


def hakmem(*arguments):
    return subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name, "report.json")

    def report(self, name, *arguments):
        """What an example writes, to a file and to standard output."""
        program = os.environ[name]
        subprocess.run([program, *arguments, self.file], check=True, stdout=subprocess.DEVNULL)
        report = valid(json.loads(self.file.read_text()))
        self.assertEqual(report["process"]["command"][0], program)
        self.assertGreater(report["memory"]["resident_bytes"], 0)
        return report["contexts"][0], hakmem("report", self.file)

    def test_places_of_machine_code_have_names_and_lines(self):
        context, text = self.report("EXAMPLE_PROFILE")
        stacks = {s["label"]: s for s in context["stacks"]}
        self.assertEqual(set(stacks), {"cache", "requests"})
        self.assertGreater(stacks["cache"]["live_bytes"], 1e6)
        self.assertGreater(stacks["requests"]["alloc_bytes"], 15e6)
        self.assertEqual(context["frames"][stacks["cache"]["frames"][0]]["module"], "example_profile")
        source = (SOURCE / "examples/profile.c").read_text().splitlines()
        for label, words in (("cache", "take(100,"), ("requests", "take(1000,")):
            line = 1 + next(i for i, text in enumerate(source) if words in text)
            # Behind the call, and only where the command reads debug information and the compiler inlined nothing.
            found = re.search(rf" {label} +(\S+) \(.*?:(\d+)\)", text)
            if found and found[1] == "serve":
                self.assertIn(int(found[2]) - line, (0, 1), text)

    def test_a_host_that_counts_has_the_lines_of_its_program(self):
        context, text = self.report("EXAMPLE_COUNTED")
        self.assertEqual(context["profile"]["mode"], "counted")
        lines = {}
        for stack in context["stacks"]:
            frame = context["frames"][stack["frames"][0]]
            self.assertEqual((frame["function"], frame["file"], frame["kind"]), ("handle", "server.vm", "interpreter"))
            lines[frame["line"]] = (stack["live_bytes"], stack["alloc_blocks"])
        self.assertEqual(lines, {1: (0, 8000), 2: (0, 8000), 3: (8000 * 64, 8000)})
        self.assertEqual([v["kind"] for v in context["verdicts"]], ["leak"])
        self.assertIn("LEAK?: handle (server.vm:3)", text)

    def test_standard_output_and_a_place_that_cannot_be_written(self):
        program = os.environ["EXAMPLE_COUNTED"]
        valid(json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout))
        done = subprocess.run([program, "/no/such/folder/x"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "/no/such/folder/x: No such file or directory\n"))

    def test_a_machine_writes_its_report(self):
        if not os.environ.get("EXAMPLE_TOY"):
            self.skipTest("the machine was not built")
        program = str(SOURCE / "examples/vms/toy/queens.toy")
        done = [os.environ["EXAMPLE_TOY"], "-r", self.file, program]
        subprocess.run(done, check=True, stdout=subprocess.DEVNULL)
        context = valid(json.loads(self.file.read_text()))["contexts"][0]
        self.assertEqual(context["name"], "toy")
        self.assertLessEqual({"closure", "code", "bytecode"}, {label["name"] for label in context["labels"]})
        if "html" in subprocess.run([COMMAND, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout:
            self.assertIn("closure", hakmem("html", self.file))


if __name__ == "__main__":
    unittest.main()
