"""Reports that are none, or not whole: one line says so, whichever command reads them."""

import json
import unittest

from support import ProgramCase


class Broken(ProgramCase):
    def test_broken_reports(self):
        self.run_script("", "--report", "whole.json")
        whole = json.loads((self.folder / "whole.json").read_text())
        broken = ["", "{", "[]", "[" * 100_000, '{"schema": 1}', "\0\xff", "1" * 5000]
        (context,) = whole["contexts"]

        def without(of, key):
            return {k: v for k, v in of.items() if k != key}

        def with_context(context):
            return json.dumps(whole | {"contexts": [context]})

        for key in ("process", "memory", "contexts", "hakmem"):
            broken += [json.dumps(without(whole, key)), json.dumps(whole | {key: [5]})]
        for key in ("command", "runtime", "pid", "cpu_seconds"):
            broken.append(json.dumps(whole | {"process": without(whole["process"], key)}))
        for key in ("labels", "stats", "status", "wrapped", "resident_ours_bytes"):
            broken += [with_context(without(context, key)), with_context(context | {key: [5]})]
        lua = whole["process"] | {"runtime": {"name": "lua", "version": "5.4"}}
        verdict = {"kind": "leak", "stack": 99, "evidence": "grew", "freed_share": 0, "windows": 9}
        line = {"frames": [0], "live_bytes": 1, "asked_bytes": 1, "live_blocks": 1}
        broken += [
            json.dumps(whole | {"process": lua}),
            with_context(context | {"labels": [{"name": "raw", "live_bytes": 5}]}),
            with_context(context | {"stats": context["stats"] | {"live_bytes": 10**400}}),
            with_context(context | {"stacks": [{"frames": []}]}),
            with_context(context | {"stacks": [line], "frames": []}),
            with_context(context | {"stacks": [line], "frames": [{"function": "f", "line": "x"}]}),
            with_context(context | {"profile": {}, "stacks": [{"frames": []}], "frames": []}),
            with_context(context | {"labels": [{"name": "raw", "live_bytes": "5", "live_blocks": 1}]}),
            with_context(context | {"stats": context["stats"] | {"live_bytes": -1}}),
            with_context(context | {"verdicts": [verdict]}),
            with_context(context | {"marks": [{"name": "m", "at_ns": "x", "live_bytes": 1, "committed_bytes": 1}]}),
        ]
        for text in broken:
            (self.folder / "broken.json").write_text(text)
            for command in (["report", "broken.json"], ["diff", "whole.json", "broken.json"]):
                with self.subTest(text[:60]):
                    done = self.hakmem(*command, check=False)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertRegex(done.stderr, r"^hakmem: broken.json: [^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
