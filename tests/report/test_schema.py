#!/usr/bin/env python3
"""What the writers write is what report.schema.json says, and the schema refuses what it should."""

import copy
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

try:
    import fastjsonschema
except ImportError:
    print("fastjsonschema is not there: the registry of Python packages was out of reach at configure time")
    sys.exit(77)

SOURCE = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((SOURCE / "bindings/report/report.schema.json").read_text())
VALID = fastjsonschema.compile(SCHEMA)


def written():
    done = subprocess.run([os.environ["REPORT_WRITE"]], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.decode("utf-8"))


class Schema(unittest.TestCase):
    def test_a_written_report_is_valid_and_complete(self):
        report = VALID(written())
        self.assertEqual(report["schema"], "hakmem-report/1")
        self.assertEqual(report["process"]["command"], [os.environ["REPORT_WRITE"]])
        self.assertGreater(report["memory"]["resident_bytes"], 0)
        first, second, _ = report["contexts"]
        self.assertEqual(first["name"], 'first "one"\ufffd')
        self.assertEqual({label["name"] for label in first["labels"]}, {"unlabelled", "string", "table"})
        self.assertEqual(first["stats"]["live_blocks"], 260)
        self.assertEqual(sum(label["live_bytes"] for label in first["labels"]), first["stats"]["live_bytes"])
        self.assertEqual(second["labels"], [])
        self.assertNotIn("profile", second)

    def test_linear_memories(self):
        report = written()
        linear = {"bytes": 65536, "memories": 1, "resident_bytes": 4096, "proportional_bytes": 8192}
        report["contexts"][0]["linear"] = linear
        VALID(report)
        for wrong in (linear | {"bytes": -1}, linear | {"resident_bytes": "1"}, {"bytes": 1}):
            report["contexts"][0]["linear"] = wrong
            with self.assertRaises(fastjsonschema.JsonSchemaException):
                VALID(report)

    def test_the_parts_of_the_memory_sum_up_to_it(self):
        report = written()
        memory, parts = report["memory"], report["memory"]["parts"]
        total = sum(part["bytes"] for part in parts)
        self.assertAlmostEqual(total, memory["resident_bytes"], delta=0.02 * memory["resident_bytes"])
        self.assertTrue(all(part["name"] and part["hint"] and part["bytes"] > 0 for part in parts))
        self.assertTrue({"metadata", "stacks", "file"} <= {part["kind"] for part in parts})
        for hole in report["contexts"][0]["holes"]:
            self.assertLessEqual(hole["pinned_bytes"], hole["free_bytes"])
        for change in ({"bytes": -1}, {"bytes": "1"}, {"name": 1}, {"kind": None}):
            memory["parts"] = [parts[0] | change]
            with self.assertRaises(fastjsonschema.JsonSchemaException):
                VALID(report)

    def test_the_profile_of_a_context_is_exact(self):
        context = written()["contexts"][0]
        self.assertEqual(context["profile"]["mode"], "exact")
        stacks, frames = context["stacks"], context["frames"]
        self.assertEqual(sum(s["live_bytes"] for s in stacks), context["stats"]["live_bytes"])
        self.assertEqual(sum(s["live_blocks"] for s in stacks), 260)
        self.assertEqual(sum(s["alloc_blocks"] for s in stacks), 310)
        self.assertEqual(sum(sum(s.get("lifetime", [])) for s in stacks), 50)
        self.assertEqual({s["label"] for s in stacks}, {"unlabelled", "string", "table"})
        named = {"function": "main", "file": "write.c", "line": 7, "module": "report_write"}
        self.assertEqual(len(frames), 4)
        for stack in stacks:
            inner, outer = (frames[f] for f in stack["frames"])
            self.assertEqual(outer, named | {"kind": "interpreter"})
            self.assertIn(inner["function"], ("allocate", "0x9"))
            self.assertEqual(inner.get("address"), inner.get("line"))
        self.assertEqual(context["images"], [{"path": "/bin/report_write", "build_id": "00ff"}])
        self.assertEqual([f.get("image") for f in frames].count(0), 2)

    def test_windows_and_decisions_of_a_learner(self):
        context = written()["contexts"][2]
        self.assertEqual([p["at_ns"] for p in context["timeline"]], [i * 10**9 for i in range(2, 21)])
        self.assertEqual([p["resident_bytes"] for p in context["timeline"]], [i << 20 for i in range(2, 21)])
        mode, undone, tried = context["decisions"][:3]
        self.assertEqual((mode["kind"], mode["phase"], mode["number"]), ("try", "learning", "mode"))
        self.assertEqual((undone["kind"], undone["from"], undone["to"]), ("undo", mode["to"], mode["from"]))
        self.assertEqual((tried["kind"], tried["number"]), ("try", "retained_bytes"))
        self.assertEqual((tried["from"], tried["to"]), (32 << 20, 64 << 20))
        self.assertGreater(tried["expected"], 1)
        self.assertIn("tries retained_bytes 64 MiB", tried["text"])

    def test_marks_and_verdicts(self):
        context = written()["contexts"][0]
        self.assertEqual([m["name"] for m in context["marks"]], [f"window {i}" for i in range(8)])
        live = [m["live_bytes"] for m in context["marks"]]
        self.assertEqual(live, sorted(live))
        self.assertEqual([m["resident_bytes"] for m in context["marks"]], [i << 20 for i in range(21, 29)])
        (verdict,) = context["verdicts"]
        (stack,) = (s for s in context["stacks"] if s["id"] == verdict["stack"])
        self.assertEqual(context["frames"][stack["frames"][0]]["line"], 11)
        self.assertAlmostEqual(verdict["bytes_a_window"], stack["live_bytes"] / 8)
        self.assertTrue(verdict["evidence"])

    def test_the_schema_refuses(self):
        good = written()
        stack = {"frames": [0], "live_blocks": 1, "live_bytes": 2}
        good["contexts"][1] |= {"stacks": [stack], "frames": [{"function": "f", "kind": "native"}]}
        VALID(good)
        for path, value in (
            (("schema",), "hakmem-report/2"),
            (("process", "pid"), "7"),
            (("contexts", 0, "stats", "live_bytes"), -1),
            (("contexts", 0, "labels", 0, "name"), None),
            (("contexts", 1, "stacks", 0, "frames"), ["f"]),
            (("contexts", 1, "stacks", 0, "live_bytes"), "many"),
            (("contexts", 1, "frames", 0, "kind"), "other"),
            (("contexts", 0, "images", 0, "build_id"), "0x17"),
            (("contexts", 0, "images", 0), {"path": "a"}),
            (("contexts", 1, "frames"), None),
        ):
            bad = copy.deepcopy(good)
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            with self.subTest(path=path), self.assertRaises(fastjsonschema.JsonSchemaValueException):
                VALID(bad)


if __name__ == "__main__":
    unittest.main(verbosity=2)
