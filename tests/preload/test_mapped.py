"""What a program maps itself: counted for what it touches, with its stack, and under a limit."""

import json
import os

from shim import HELPERS, Case, main

PROGRAM = os.path.join(HELPERS, "preload_mapped")


class Mapped(Case):
    def test_without_a_limit_all_is_granted(self):
        done = self.start([PROGRAM], f"profile={self.path('p.json')}")
        self.assertEqual((done.stderr, done.returncode, done.stdout.count("granted"), done.stdout.count("\n")), ("", 0, 8, 8))
        with open(self.path("p.json")) as file:
            report = json.load(file)
        _, mapped = report["contexts"]
        self.assertEqual(mapped["name"], "mapped")
        live = {}
        for stack in mapped["stacks"]:
            names = [mapped["frames"][n]["function"] for n in stack["frames"]]
            live[names[0]] = live.get(names[0], 0) + stack["live_bytes"]
        self.assertEqual(live.get("map", 0), 0)  # what was touched of it is given back
        self.assertEqual(sum(live.values()), 20 << 20)
        parts = report["memory"]["parts"]
        self.assertTrue(any(p["name"].startswith("mapped by ") and p["bytes"] == 20 << 20 for p in parts), parts)

    def test_a_limit_holds_for_it(self):
        done = self.start([PROGRAM], "limit=60M")
        said = dict(line.split() for line in done.stdout.splitlines())
        granted = {name for name, what in said.items() if what == "granted"}
        self.assertEqual(granted, {"reserved", "wide", "block", "again"}, done.stderr)
        self.assertRegex(
            done.stderr, r"^hakmem: HAKMEM: the program was refused \d+\.0 MiB that it maps itself, past malloc: the limit\n$"
        )


if __name__ == "__main__":
    main()
