"""Report files as text."""

import json
import unittest

from hakmem import _report
from support import ProgramCase


def as_file(parts):
    """The report that has these parts."""
    stats = dict(parts["stats"])
    memory = {"resident_bytes": stats.pop("resident_bytes"), "peak_resident_bytes": parts["peak_resident_bytes"]}
    context = {
        "name": "python",
        "resident_ours_bytes": stats.pop("resident_ours_bytes"),
        "stats": stats,
        "labels": [{"name": name, **amounts} for name, amounts in parts["labels"].items()],
        "status": parts["status"],
        "wrapped": parts["wrapped"],
    }
    if "sites" in parts:
        context["frames"] = [{k: s[k] for k in ("file", "function", "line")} for s in parts["sites"]]
        amounts = ("live_bytes", "live_blocks", "asked_bytes")
        context["stacks"] = [
            {"frames": [i] if s["file"] else [], **{k: s[k] for k in amounts}} for i, s in enumerate(parts["sites"])
        ]
    process = {k: parts[k] for k in ("command", "pid", "parent", "cpu_seconds")}
    process["runtime"] = {"name": "python", "version": parts["python"]}
    return {
        "schema": _report.SCHEMA,
        "hakmem": parts["hakmem"],
        "process": process,
        "memory": memory,
        "contexts": [context],
    }


def report(**more):
    amounts = {"live_bytes": 1, "live_blocks": 1}
    return {
        "hakmem": "1.2.3",
        "python": "3.99.0 (main)",
        "command": ["python", "x.py"],
        "pid": 5,
        "parent": 4,
        "cpu_seconds": 1.239,
        "peak_resident_bytes": 3 << 20,
        "status": {"raw": "replaced", "mem": "wrapped", "obj": "default", "arena": "replaced", "why": ""},
        "stats": dict.fromkeys(_report.STATS.split(), 0),
        "labels": {"raw": amounts},
        "wrapped": {},
        **more,
    }


class Text(ProgramCase):
    def text_of(self, found):
        (self.folder / "r.json").write_text(json.dumps(as_file(found)))
        return _report.text(_report.load(str(self.folder / "r.json")))

    def test_every_line(self):
        stats = {
            "live_bytes": 5000,
            "big_bytes": 2000,
            "cached_bytes": 1500,
            "released_bytes": 500,
            "retained_bytes": 1 << 20,
            "metadata_bytes": 4096,
            "resident_bytes": 1 << 21,
            "resident_ours_bytes": 1 << 20,
            "peak_bytes": 1 << 30,
            "committed_bytes": 10_000,
            "hard_limit": 3 << 19,
            "failures": 7,
        }
        site = {"file": "/x/y.py", "function": "f", "line": 12, "live_bytes": 3000, "live_blocks": 3, "asked_bytes": 2900}
        found = report(
            stats=stats,
            sites=[site | {"file": "", "function": "", "line": 0, "live_bytes": 1000, "live_blocks": 1, "asked_bytes": 990}, site],
            labels={"raw": {"live_bytes": 1000, "live_blocks": 2}, "dict": {"live_bytes": 3000, "live_blocks": 4}, "gone": {"live_bytes": 0, "live_blocks": 0}},
            wrapped={"mem": {"allocations": 8, "bytes": 99}},
        )  # fmt: skip
        found["status"]["why"] = "a reason"
        self.assertEqual(
            self.text_of(found),
            "hakmem 1.2.3: python x.py\n"
            "  Python 3.99.0, process 5, 1.23 s of CPU, peak resident 3.00 MiB\n"
            "  domains: raw replaced, mem wrapped, obj default, arena replaced\n"
            "  note: a reason\n"
            "\n"
            "  label                      live bytes      blocks   share\n"
            f"  dict                             3000           4  75.0 %  {'#' * 36}\n"
            f"  raw                              1000           2  25.0 %  {'#' * 12}\n"
            "\n"
            "     live bytes     asked for     blocks   share  line\n"
            "           3000          2900          3  75.0 %  /x/y.py:12 f\n"
            "           1000           990          1  25.0 %  (no Python code)\n"
            "\n"
            "  mem, wrapped: 8 allocations, 99 bytes asked for\n"
            "  peak live 1024.00 MiB, committed 9.8 KiB\n"
            "  limit 1.50 MiB, 7 allocations refused\n"
            "  resident 2.00 MiB: hakmem 1.00 MiB, the rest 1.00 MiB",
        )

    def test_names_are_no_commands_to_the_terminal(self):
        name = "a\x1b[2J\n\x9b\x7fb"
        amounts = {"live_bytes": 3000, "live_blocks": 3, "asked_bytes": 2900}
        found = report(
            labels={name: {"live_bytes": 3000, "live_blocks": 3}},
            sites=[{"file": f"/x/{name}.py", "function": name, "line": 12, **amounts}],
            command=["python", name],
        )
        found["status"]["why"] = name
        text = self.text_of(found)
        self.assertEqual(sorted({c for c in text if not c.isprintable()}), ["\n"])
        self.assertEqual(text.count("a?[2J???b"), 5)
        self.assertEqual(len(text.splitlines()), len(self.text_of(report(sites=found["sites"])).splitlines()) + 1)

    def test_parts_of_resident_memory(self):
        found = as_file(report())
        found["memory"]["parts"] = [
            {"kind": "live", "name": "live: dict", "bytes": 3 << 19, "hint": "a hint"},
            {"kind": "file", "name": "python3", "bytes": 1 << 20, "hint": "code"},
        ]
        path = self.folder / "r.json"
        path.write_text(json.dumps(found))
        self.assertEqual(
            _report.text(_report.load(str(path))).splitlines()[-3:],
            [
                "  process resident              2621440        2.50 MiB  the sum of these parts:",
                "    live: dict                  1572864        1.50 MiB  a hint",
                "    python3                     1048576        1.00 MiB  code",
            ],
        )
        found["memory"]["parts"][0]["bytes"] = "many"
        path.write_text(json.dumps(found))
        with self.assertRaises(ValueError):
            _report.load(str(path))

    def test_the_largest_and_all_others(self):
        labels = {f"l{i}": {"live_bytes": i, "live_blocks": 2} for i in range(1, 41)}
        sites = [
            {"file": "x.py", "function": "f", "line": i, "live_bytes": i, "live_blocks": 2, "asked_bytes": 1}
            for i in range(1, 31)
        ]
        lines = [line.split() for line in self.text_of(report(labels=labels, sites=sites)).splitlines()]
        rows = {line[0]: line[1:3] for line in lines if line and line[0].startswith("l") and line[0] != "live"}
        self.assertEqual(list(rows)[1:], [f"l{i}" for i in range(40, 10, -1)])
        (others,) = [line for line in lines if line[:2] == ["(10", "others)"]]
        self.assertEqual(others[2:4], [str(sum(range(1, 11))), "20"])
        places = [line for line in lines if line and line[-1] == "f"]
        self.assertEqual([int(line[0]) for line in places], list(range(30, 10, -1)))
        (rest,) = [line for line in lines if line[-2:] == ["(10", "others)"] and line[0] != "(10"]
        self.assertEqual(rest[:3], [str(sum(range(1, 11))), "10", "20"])

    def test_no_more_rows_than_fit_without_others(self):
        labels = {f"l{i}": {"live_bytes": i, "live_blocks": 2} for i in range(1, 31)}
        self.assertNotIn("others", self.text_of(report(labels=labels)))

    def test_names_of_all_kinds(self):
        site = {"function": "f", "line": 1, "live_bytes": 9, "live_blocks": 1, "asked_bytes": 9}
        names = ["", "\0", "\ud800", "é" * 3000, "x" * 100_000, "%s%n", "a\nb"]
        for name in names:
            with self.subTest(name[:9]):
                found = report(
                    command=[name],
                    python=name,
                    hakmem=name,
                    labels={name: {"live_bytes": 9, "live_blocks": 1}},
                    sites=[site | {"file": name, "function": name}, site | {"file": "/z.py", "function": "z" * 999}],
                )  # fmt: skip
                text = self.text_of(found)
                self.assertIn("resident", text.splitlines()[-1])
                self.assertNotIn("\ufffd", text, "cut within a character")
                for line in text.splitlines():
                    self.assertLess(len(line), 300)

    def test_numbers_of_all_kinds(self):
        most = (1 << 64) - 1
        found = report(pid=most, cpu_seconds=1e18, peak_resident_bytes=most)
        found["stats"] = dict.fromkeys(found["stats"], most)
        found["labels"] = {"a": {"live_bytes": most, "live_blocks": most}, "b": {"live_bytes": 5, "live_blocks": 0}}
        found["sites"] = [
            {"file": "x.py", "function": "f", "line": most, "live_bytes": most, "live_blocks": 1, "asked_bytes": 0}
        ]  # fmt: skip
        self.assertIn("18446744073709551615", self.text_of(found))
        for bad in (-1, 1 << 64, True):
            for key in ("pid", "peak_resident_bytes"):
                if bad is not True:
                    with self.assertRaisesRegex(ValueError, "parts of it are not there"):
                        self.text_of(report(**{key: bad}))
        for bad in (float("nan"), float("inf"), -1.0):
            with self.assertRaisesRegex(ValueError, "parts of it are not there"):
                self.text_of(report(cpu_seconds=bad))


if __name__ == "__main__":
    unittest.main()
