#!/usr/bin/env python3
"""The command hakmem: what it writes has the numbers that the report has, and bad files get one line."""

import copy
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import example

try:
    import fastjsonschema
except ImportError:
    fastjsonschema = None

COMMAND = os.environ["HAKMEM_COMMAND"]


def hakmem(*arguments, status=0, stdin=b""):
    done = subprocess.run([COMMAND, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done


SANITIZED = b"__asan_init" in Path(COMMAND).read_bytes()  # its shadow is terabytes of data to the kernel


def bounded():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20))


# Objects and bytes: allocated, in use.
PPROF_TOTALS = [147_000, 14_700_000, 43_000, 4_300_001]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The members of a protobuf message: number and value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


PPROF = "github.com/google/pprof@v0.0.0-20261105003125-4bf881d7fb0b"


def built_pprof(folder):
    """pprof of Google: HAKMEM_PPROF, or built by go, half a minute the first time. SkipTest if it cannot be had."""
    if "HAKMEM_PPROF" in os.environ:
        return os.environ["HAKMEM_PPROF"]
    go = shutil.which("go")
    if not go:
        raise unittest.SkipTest("no go; HAKMEM_PPROF may name a pprof")
    env = {**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "local", "GOFLAGS": "-p=2"}
    try:
        done = subprocess.run([go, "install", PPROF], env=env, capture_output=True, text=True, timeout=200)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest("go takes too long to build pprof") from None
    if done.returncode != 0:
        raise unittest.SkipTest(f"go builds no pprof: {done.stderr.strip().splitlines()[-1:]}")
    return str(folder / "pprof")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.report = example.report()
        self.file = self.write("a.json", self.report)

    def write(self, name, value):
        path = self.folder / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def text(self, *arguments):
        return hakmem(*arguments).stdout.decode()


class Text(Case):
    def test_policies(self):
        folder = self.folder
        (folder / "a.policy").write_text("hakmem-policy 1\nmode lean\nretained_bytes 64M\n")
        (folder / "b.policy").write_text("hakmem-policy 1\nmode lean\nretained_bytes 32M\nexpected_bytes 10M\n")
        (folder / "bad.policy").write_text("hakmem-policy 1\nretained_bytes lots\n")
        run = lambda *words: subprocess.run([COMMAND, "policy", *words], cwd=folder, capture_output=True, text=True, timeout=60)  # noqa: E731
        self.assertEqual(run("check", "a.policy", "b.policy").stdout, "a.policy: sound, 2 statements\nb.policy: sound, 3 statements\n")
        done = run("check", "bad.policy", "a.policy", "none.policy")
        self.assertEqual((done.returncode, done.stdout), (1, "a.policy: sound, 2 statements\n"))
        bad, none = done.stderr.splitlines()
        self.assertRegex(bad, r"^hakmem: policy: bad\.policy:2: ")
        self.assertEqual(none, "hakmem: policy: none.policy: No such file or directory")
        done = run("diff", "a.policy", "b.policy")
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())),
                         (0, ["expected_bytes: not there -> 10M", "retained_bytes: 64M -> 32M"]))
        self.assertEqual(run("diff", "a.policy", "a.policy").stdout, "the same\n")
        for wrong in ([], ["check"], ["diff", "a.policy"], ["learn", "a.policy"]):
            done = run(*wrong)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), wrong)

    def test_report(self):
        text = self.text("report", self.file)
        for part in (
            "process 71, lua 5.4.4: resident 9.00 MiB, peak 12.00 MiB, anonymous 6.00 MiB\n",
            "  LEAK?: parse (a;b.lua:12), table: grew in 9 of 9 windows\n"
            "  grows: </script><b>&?[31m, unlabelled: grew a lot\n"
            "  grows: main chunk (a;b.lua:90), string: grew a little\n",
            "3 stacks, sampled, one each 512.00 KiB; the largest live:",
            "7 stacks are missing",
            "3 allocations refused",
            "context tenant: 16 B live in 16 blocks, peak 16 B, committed 16 B\n",
            "context tenant#2\n",
        ):
            self.assertIn(part, text)
        self.assertRegex(text, r"3\.81 MiB +488\.28 KiB +4\.29 MiB +8\.58 MiB  table +parse \(a;b\.lua:12\)")
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f]")
        self.assertEqual(text, hakmem("report", "-", stdin=self.file.read_bytes()).stdout.decode())

    def test_leaks_beside_free_lists_that_nobody_follows(self):
        note = "CPython hands them out again from free lists, and this profile does not follow that.\n"
        report = json.loads(self.file.read_text())
        for reused, noted in (("not asked for", True), ("followed", False), (None, False)):
            report["contexts"][0]["reused"] = reused
            if reused is None:
                del report["contexts"][0]["reused"]
            self.assertEqual(note in self.text("report", self.write("lists.json", report)), noted, reused)
        report["contexts"][0] |= {"reused": "not asked for", "verdicts": report["contexts"][0]["verdicts"][:0]}
        self.assertNotIn(note, self.text("report", self.write("lists.json", report)))

    def test_what_a_report_leaves_out_is_not_shown_as_nothing(self):
        def head(process, memory):
            bare = {"schema": "hakmem-report/1", "process": process, "memory": memory, "contexts": [{"name": "vm"}]}
            return self.text("report", self.write("bare.json", bare))

        self.assertEqual(head({}, {}), "hakmem\n\ncontext vm\n")
        self.assertEqual(head({"pid": 7}, {}), "hakmem\n  process 7\n\ncontext vm\n")
        for process, memory, line in (
            ({"runtime": {"name": "vm", "version": "2"}}, {}, "vm 2"),
            ({"runtime": {"version": "2"}}, {}, "2"),
            ({"pid": 7, "runtime": {"name": "vm"}}, {"anonymous_bytes": 1024}, "process 7, vm: anonymous 1.00 KiB"),
            ({}, {"resident_bytes": 2048, "anonymous_bytes": 1024}, "resident 2.00 KiB, anonymous 1.00 KiB"),
        ):
            self.assertEqual(head(process, memory), f"hakmem\n  {line}\n\ncontext vm\n")
        bare = dict(self.report, process={}, memory={})
        series = self.text("prometheus", self.write("bare.json", bare))
        self.assertNotIn("pid=", series)
        self.assertNotRegex(series, "(?m)^hakmem_resident_bytes")
        self.assertIn('\nhakmem_live_bytes{context="tenant"} 16\n', series)

    def test_order_and_rows(self):
        def sites(*options):
            text = self.text("report", self.file, *options).split(" site\n")[1].split("\n\n")[0]
            return [line.split()[-1 if "]" not in line else -2] for line in text.splitlines()]

        self.assertEqual(len(sites()), 3)
        self.assertEqual(len(sites("--top", "2")), 2)
        first = self.text("report", self.file, "-n1", "--by", "alloc").split(" site\n")[1]
        self.assertIn("parse", first.splitlines()[0])
        changed = copy.deepcopy(self.report)
        changed["contexts"][0]["stacks"][1]["peak_bytes"] = 1e9
        other = self.write("b.json", changed)
        first = self.text("report", other, "-n1", "--by", "peak").split(" site\n")[1]
        self.assertIn("main chunk", first.splitlines()[0])

    def test_the_parts_of_the_memory_and_what_pins_it(self):
        text = self.text("report", self.write("r.json", example.resident()))
        self.assertIn(
            "\n  resident memory, 8.00 MiB:\n"
            "      4.00 MiB  50.0 %  live: table                  a profile names their lines\n"
            "      1.00 MiB  12.5 %  live: string                 a profile names their lines\n"
            "      2.00 MiB  25.0 %  free between live blocks     held by the blocks beside\n"
            "    512.00 KiB   6.2 %  lib<b>?[31m.so               code\n"
            "    512.00 KiB   6.2 %  other                        \n",
            text,
        )
        self.assertIn(
            "\n  3.25 MiB are free in slabs that have live blocks; of these trim cannot give back 2.12 MiB:\n"
            "      2.00 MiB  beside 900 blocks of 64 bytes\n"
            "    128.00 KiB  beside 70 blocks of 96 bytes\n"
            "      2.00 MiB  pinned by 40000 blocks of parse (a;b.lua:12)\n"
            "     64.00 KiB  pinned by 3000 blocks of main chunk (a;b.lua:90)\n",
            text,
        )
        self.assertNotIn("resident memory", self.text("report", self.file))
        self.assertNotIn("are free in slabs", self.text("report", self.file))

    def test_a_report_of_the_writers(self):
        done = subprocess.run([os.environ["REPORT_WRITE"]], stdout=subprocess.PIPE, check=True)
        text = hakmem("report", "-", stdin=done.stdout).stdout.decode()
        self.assertIn("context second: 0 B live in 0 blocks", text)
        self.assertRegex(text, r"table +\d+\.\d+ KiB +193 ")


class Formats(Case):
    def test_folded(self):
        lines = self.text("folded", self.file).splitlines()
        name = 'lua "x"?;'
        self.assertEqual(
            lines,
            [
                name + "main chunk (a:b.lua:90);parse (a:b.lua:12);malloc [libc.so.6];[table] 4000000",
                name + "main chunk (a:b.lua:90);malloc [libc.so.6];[string] 300001",
            ],
        )
        alloc = self.text("folded", "--by", "alloc", self.file).splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in alloc), 14_700_000)

    def test_speedscope(self):
        whole = json.loads(self.text("speedscope", self.file, self.file))
        frames = whole["shared"]["frames"]
        self.assertEqual([p["name"] for p in whole["profiles"]], ["live", "at the peak", "allocated"])
        for profile, total in zip(whole["profiles"], (4_300_001, 4_500_100, 14_700_000), strict=True):
            self.assertEqual(len(profile["samples"]), 6)
            self.assertEqual(sum(profile["weights"]), 2 * total)
            self.assertEqual(profile["endValue"], 2 * total)
            for sample, again in zip(profile["samples"][:3], profile["samples"][3:], strict=True):
                self.assertEqual([frames[f] for f in sample], [frames[f] for f in again])
        schema = Path(os.environ.get("SPEEDSCOPE", ""), "file-format-schema.json")
        if fastjsonschema and schema.is_file():
            fastjsonschema.validate(json.loads(schema.read_text()), whole)
        names = [[frames[f]["name"] for f in s] for s in whole["profiles"][0]["samples"]]
        self.assertEqual(names[0], ["main chunk", "parse", "malloc", "table"])
        self.assertEqual(names[2][-1], "unlabelled")

    def test_prometheus(self):
        text = self.text("prometheus", self.file)
        self.assertIn('hakmem_failures_total{pid="71",context="lua \\"x\\"\\n"} 3\n', text)
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("prometheus-client is not there")
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, sample.labels.get("context"), sample.labels.get("label"))
                self.assertNotIn(key, found)
                found[key] = sample.value
        self.assertEqual(found["hakmem_label_live_bytes", 'lua "x"\n', "table"], 4_000_000)
        self.assertEqual(found["hakmem_live_bytes", "tenant", None], 16)
        self.assertEqual(found["hakmem_resident_bytes", None, None], 9437184)

    def test_prometheus_has_the_parts_of_the_memory(self):
        made = example.resident()
        made["memory"]["parts"].append(made["memory"]["parts"][0])
        text = self.text("prometheus", self.write("r.json", made))
        self.assertIn('hakmem_resident_part_bytes{pid="71",part="live",name="live: table"} 8388608\n', text)
        self.assertIn('{pid="71",part="of the future",name="other"} 524288\n', text)
        self.assertEqual(text.count("hakmem_resident_part_bytes{"), 5)

    def test_linear_memories(self):
        self.assertNotIn("linear", self.text("prometheus", self.file) + self.text("report", self.file))
        linear = {"memories": 2, "bytes": 3 << 20, "resident_bytes": 1 << 20, "proportional_bytes": 2 << 20}
        self.report["contexts"][1]["linear"] = linear
        file = self.write("linear.json", self.report)
        self.assertIn(
            "committed 16 B\n  linear memories: 2, 3.00 MiB, resident 1.00 MiB, proportional 2.00 MiB\n",
            self.text("report", file),
        )
        text = self.text("prometheus", file)
        for name, value in (("", 3 << 20), ("_resident", 1 << 20), ("_proportional", 2 << 20)):
            self.assertEqual(text.count(f"\nhakmem_linear{name}_bytes{{"), 1)
            self.assertIn(f'hakmem_linear{name}_bytes{{pid="71",context="tenant"}} {value}\n', text)

    def test_prometheus_has_each_series_once(self):
        blocks = {"live_blocks": 1}
        labels = (("t", 1), ("u\x01\x85", 2), ("t", 5), ("u\x02??", 7))
        twice = [{"name": name, "live_bytes": live} | blocks for name, live in labels]
        for context, name in zip(self.report["contexts"], ("c\x1b", "c?", "c\x7f"), strict=True):
            context |= {"name": name, "labels": twice}
        text = self.text("prometheus", self.write("b.json", self.report))
        names = [line.partition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(names), len(set(names)))
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        for context in ("c?", "c?#2", "c?#3"):
            for label, live in (("t", 6), ("u???", 9)):
                series = f'hakmem_label_live_bytes{{pid="71",context="{context}",label="{label}"}}'
                self.assertIn(f"{series} {live}\n", text)

    def test_prometheus_takes_one_report_of_a_process(self):
        there = self.write("there", "as it was")
        done = hakmem("prometheus", "-o", there, self.file, self.file, status=1)
        self.assertEqual(done.stderr.decode(), f"hakmem: {self.file}: a second report of process 71; one of each process is taken\n")
        self.assertEqual(there.read_text(), "as it was")
        other = self.write("b.json", self.report | {"process": self.report["process"] | {"pid": 72}})
        self.assertIn('hakmem_resident_bytes{pid="72"}', self.text("prometheus", self.file, other))

    def test_promtool(self):
        promtool = os.environ.get("HAKMEM_PROMTOOL") or shutil.which("promtool")
        if not promtool:
            self.skipTest("no promtool (Debian package: prometheus); HAKMEM_PROMTOOL may name one")
        # A name is allowed to say what promtool only advises against; problems of the format are errors.
        text = hakmem("prometheus", self.file).stdout
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())

    def test_pprof(self):
        file = self.folder / "a.pb.gz"
        hakmem("pprof", "-o", file, self.file)
        raw = gzip.decompress(file.read_bytes())
        self.assertIn(b"alloc_objects", raw)
        self.assertEqual(raw[:2], b"\x32\x00")  # the first text is ""
        self.assertEqual(hakmem("pprof", self.file).stdout, file.read_bytes())
        samples = [message for field, message in fields(raw) if field == 2]
        values = [packed(dict(fields(sample))[2]) for sample in samples]
        self.assertEqual([sum(column) for column in zip(*values, strict=True)], PPROF_TOTALS)
        self.assertEqual(packed(dict(fields(samples[0]))[1]), [3, 1, 2])

    def test_pprof_has_the_program_first(self):
        context = self.report["contexts"][0]
        modules = ("/lib/x.so", "/opt/lua")
        context["frames"] += [{"function": "f", "module": module, "kind": "native"} for module in modules]
        context["stacks"][0]["frames"] = [2, 0, 5, 4]
        library, program = (module.encode() for module in modules)
        for command, first in ((["lua"], program), (["/usr/bin/lua"], program), (["lu"], library), ([], library)):
            self.report["process"]["command"] = command
            file = self.write("b.json", self.report)
            parts = list(fields(gzip.decompress(hakmem("pprof", file).stdout)))
            texts = [value for number, value in parts if number == 6]
            mappings = [dict(fields(value)) for number, value in parts if number == 3]
            self.assertEqual([m[1] for m in mappings], [1, 2, 3, 4])
            self.assertEqual(texts[mappings[0][5]], first)

    def test_pprof_says_where_code_lies(self):
        context = self.report["contexts"][0]
        context["images"] = [{"path": "/lib/x.so", "build_id": "c0ffee"}, {"path": "/lib/y.so", "build_id": "abba"}]
        context["frames"] += [
            {"function": "f", "module": "/lib/x.so", "kind": "native", "image": 0, "address": 0x1234},
            {"function": "g", "module": "/lib/y.so", "kind": "native", "image": 1, "address": 0x1234},
            {"function": "h", "module": "/lib/y.so", "kind": "native", "image": 1, "address": 0x2000},
            {"function": "far", "module": "/lib/z.so", "kind": "native", "image": 7, "address": 5},
        ]
        context["stacks"][0]["frames"] = [4, 5, 6, 7, 0]
        parts = list(fields(gzip.decompress(hakmem("pprof", self.write("b.json", self.report)).stdout)))
        texts = [value.decode() for number, value in parts if number == 6]
        mappings = {m[1]: m for m in (dict(fields(value)) for number, value in parts if number == 3)}
        locations = [dict(fields(value)) for number, value in parts if number == 4]
        ranges = sorted((m[2], m[3]) for m in mappings.values())
        self.assertTrue(all(a[0] < a[1] <= b[0] for a, b in zip(ranges, ranges[1:])))
        names, places = {}, {}
        for location in locations:
            mapping = mappings[location[2]]
            name = texts[mapping[5]]
            names[name] = texts[mapping.get(6, 0)]
            if 3 in location:
                self.assertTrue(mapping[2] <= location[3] < mapping[3])
                places.setdefault(name, []).append(location[3] - mapping[2])
        self.assertEqual(names, {"/usr/lib/libc.so.6": "", "/lib/x.so": "c0ffee", "/lib/y.so": "abba", "/lib/z.so": "", "[lua]": ""})
        self.assertEqual(places, {"/lib/x.so": [0x1234], "/lib/y.so": [0x1234, 0x2000]})

    def test_go_tool_pprof(self):
        pprof = built_pprof(self.folder)
        file = self.folder / "a.pb.gz"
        hakmem("pprof", "-o", file, self.file)
        done = subprocess.run(
            [pprof, "-raw", str(file)],
            capture_output=True,
            text=True,
            env={**os.environ, "PPROF_TMPDIR": str(self.folder)},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout
        rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+): ([\d ]+)$", text, re.M)
        self.assertEqual([sum(int(row[i]) for row in rows) for i in range(4)], PPROF_TOTALS)
        self.assertEqual(rows[0][4].split(), ["3", "1", "2"])
        self.assertIn("label:[table]", text)
        self.assertRegex(text, r"parse a;b\.lua:12")
        self.assertIn("PeriodType: space bytes\nPeriod: 524288\n", text)

    def test_many_stacks(self):
        report = example.many(5000)
        file = self.write("many.json", report)
        total = sum(s["live_bytes"] for s in report["contexts"][0]["stacks"])
        lines = self.text("folded", file).splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), total)
        whole = json.loads(self.text("speedscope", file))
        self.assertEqual(whole["profiles"][0]["endValue"], total)
        hakmem("pprof", "-o", self.folder / "many.gz", file)


class Bad(Case):
    def refused(self, text, expected, command="report"):
        path = self.folder / "bad.json"
        path.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
        done = hakmem(command, path, status=1)
        self.assertEqual(done.stdout, b"")
        error = done.stderr.decode()
        self.assertEqual(error.count("\n"), 1, error)
        self.assertIn("bad.json: ", error)
        self.assertIn(expected, error)
        self.assertNotRegex(error[:-1], "[\x00-\x1f]")

    def test_files_that_are_none(self):
        good = self.file.read_bytes()
        self.refused(b"", "not a report")
        self.refused(b"\x7fELF\x00\x01", "not a report")
        self.refused(b'{"schema": "\xff"}', "not a report")
        self.refused(b"[1]", 'no "schema"')
        self.refused({"schema": 1, "python": "3"}, 'its "schema" is not hakmem-report/1')
        self.refused({"schema": "hakmem-policy/1"}, 'its "schema" is not hakmem-report/1')
        self.refused(
            {"schema": "hakmem-report/2"},
            "a report of another version: it is hakmem-report/2, and this hakmem reads hakmem-report/1\n",
        )
        self.refused(good + b"x", "a broken report: line ")
        self.refused(b"[" * 100_000, "not a report")
        self.refused(b'{"a":' * 100_000, "not a report")
        endless = subprocess.run([COMMAND, "report", "/dev/zero"], capture_output=True, timeout=60, preexec_fn=bounded)
        self.assertEqual((endless.returncode, endless.stderr), (1, b"hakmem: /dev/zero: not a report of hakmem\n"))
        for cut in range(1, len(good), max(1, len(good) // 60)):
            known = b'"hakmem-report/' in good[:cut]
            self.refused(good[:cut], "a report that is cut off" if known else "not a report")

    def test_broken_parts(self):
        for path, value in (
            (("contexts",), {}),
            (("process",), None),
            (("contexts", 0), 7),
            (("contexts", 0, "stats"), []),
            (("contexts", 0, "frames"), []),
            (("contexts", 0, "frames", 0), {}),
            (("contexts", 0, "stacks", 0, "frames", 0), 4),
            (("contexts", 0, "stacks", 0, "frames", 0), -1),
            (("contexts", 0, "stacks", 0, "frames", 0), "0"),
            (("contexts", 0, "stacks", 0, "frames", 0), 0.5),
            (("contexts", 0, "stacks", 0, "live_blocks"), None),
            (("contexts", 0, "stacks", 0, "id"), "1"),
            (("contexts", 0, "frames", 2, "module"), 5),
            (("contexts", 0, "frames", 2, "file"), ["a"]),
            (("contexts", 0, "frames", 0, "line"), "12"),
            (("contexts", 0, "stacks", 0, "frames"), [0] * 1025),
            (("contexts", 0, "stacks", 0, "frames"), 0),
            (("contexts", 0, "stacks", 0, "live_bytes"), "1"),
            (("contexts", 0, "stacks", 0, "live_bytes"), -1),
            (("contexts", 0, "stacks", 0, "peak_bytes"), 1e30),
            (("contexts", 0, "verdicts"), "none"),
        ):
            bad = example.resident()
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            with self.subTest(path=path, value=str(value)[:20]):
                self.refused(bad, "a broken report")

    def test_a_stack_has_1024_frames_at_most(self):
        stack = self.report["contexts"][0]["stacks"][0]
        stack["frames"] = [0] * 1024
        file = self.write("deep.json", self.report)
        folded = max(self.text("folded", file).splitlines(), key=len)
        self.assertEqual(folded.count("parse"), 1024)
        hakmem("pprof", "-o", self.folder / "deep.gz", file)
        stack["frames"].append(0)
        self.refused(self.report, "a broken report")

    def test_members_that_cannot_be(self):
        context = ("contexts", 0)
        for path, value, said in (
            ((*context, "labels", 1, "live_bytes"), "300000", "labels[1].live_bytes of context 1"),
            ((*context, "labels", 0, "live_blocks"), -1, "labels[0].live_blocks of context 1"),
            ((*context, "labels", 0, "name"), None, "labels[0].name of context 1"),
            ((*context, "labels", 0), "table", "labels[0] of context 1"),
            (("contexts", 1, "stats", "live_bytes"), -16, "stats.live_bytes of context 2"),
            ((*context, "stats", "failures"), "3", "stats.failures of context 1"),
            ((*context, "linear"), 5, "linear of context 1"),
            ((*context, "linear"), {"bytes": -1}, "linear.bytes of context 1"),
            ((*context, "linear"), {"memories": "2"}, "linear.memories of context 1"),
            ((*context, "linear"), {"resident_bytes": None}, "linear.resident_bytes of context 1"),
            ((*context, "linear"), {"proportional_bytes": []}, "linear.proportional_bytes of context 1"),
            ((*context, "stats", "hard_limit"), 1e21, "stats.hard_limit of context 1"),
            (("memory", "resident_bytes"), -1, "memory.resident_bytes"),
            (("process", "command"), "lua a.lua", "process.command"),
            (("process", "command", 1), 7, "process.command[1]"),
            (("process", "time"), 253_402_300_800, "process.time"),
            (("process", "time"), -1, "process.time"),
            (("process", "pid"), "71", "process.pid"),
            (("process", "now_ns"), None, "process.now_ns"),
            (("process", "runtime"), "lua", "process.runtime"),
            (("process", "runtime", "version"), 5.4, "process.runtime.version"),
            (("contexts", 1, "name"), 5, "name of context 2"),
            ((*context, "profile", "mode"), 1, "profile.mode of context 1"),
            ((*context, "profile", "dropped_stacks"), [], "profile.dropped_stacks of context 1"),
            ((*context, "verdicts", 1, "stack"), 99, "verdicts[1].stack, as there is no stack 99, of context 1"),
            ((*context, "verdicts", 0, "stack"), "2", "verdicts[0].stack of context 1"),
            ((*context, "histories"), [{"stack": 1, "live": [1, 2], "allocated": [1, 1]}], "histories[0].live of context 1"),
            ((*context, "histories"), [{"stack": 1, "live": [1], "allocated": [1]}], "histories[0].allocated of context 1"),
            ((*context, "histories"), [{"stack": 1, "live": [1], "kept": [1, -1]}], "histories[0].kept of context 1"),
            ((*context, "histories"), [{"stack": "x"}], "histories[0].stack of context 1"),
            ((*context, "verdicts", 2, "evidence"), 7, "verdicts[2].evidence of context 1"),
            ((*context, "marks", 0, "at_ns"), "now", "marks[0].at_ns of context 1"),
            ((*context, "marks", 0, "resident_bytes"), -1, "marks[0].resident_bytes of context 1"),
            ((*context, "timeline", 3, "live_bytes"), None, "timeline[3].live_bytes of context 1"),
            ((*context, "decisions", 0, "text"), {}, "decisions[0].text of context 1"),
            (("memory", "parts"), {}, "memory.parts"),
            (("memory", "parts", 1), "x", "memory.parts[1]"),
            (("memory", "parts", 0, "bytes"), "5", "memory.parts[0].bytes"),
            (("memory", "parts", 2, "name"), None, "memory.parts[2].name"),
            ((*context, "holes"), {}, "holes of context 1"),
            ((*context, "holes", 1, "pinned_bytes"), -1, "holes[1].pinned_bytes of context 1"),
            ((*context, "stacks", 0, "pinned_bytes"), "4", "stacks of context 1"),
            ((*context, "stacks", 0, "peak_bytes"), "4", "stacks of context 1"),
            ((*context, "stacks", 0, "live_bytes_error"), -1, "stacks of context 1"),
            ((*context, "stacks", 0, "label"), 5, "stacks of context 1"),
        ):
            bad = example.resident()
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            for command in ("report", "folded", "prometheus"):
                with self.subTest(path=path, value=str(value)[:20], command=command):
                    self.refused(bad, f"a broken report: {said}\n", command)

    def test_members_that_have_to_be_there(self):
        for member in ("frames", "live_blocks", "live_bytes"):
            bad = example.report()
            del bad["contexts"][0]["stacks"][1][member]
            self.refused(bad, "a broken report: stacks of context 1\n")

    def test_without_stacks(self):
        del self.report["contexts"][0]
        for command in ("pprof", "folded", "speedscope"):
            self.refused(self.report, "no stacks", command)

    def test_arguments(self):
        for arguments in (
            (),
            ("no-such",),
            ("report",),
            ("diff", self.file),
            ("diff", self.file, self.file, self.file),
            ("report", "--by", "size", self.file),
            ("report", "--top", "0", self.file),
            ("report", "--top", "-1", self.file),
            ("report", "--no-such", self.file),
        ):
            done = hakmem(*arguments, status=2)
            self.assertEqual(done.stdout, b"")
            self.assertIn(b"hakmem", done.stderr)
        self.assertIn(b"usage", hakmem("--help").stdout)
        self.assertRegex(hakmem("--version").stdout, rb"^hakmem \d+\.\d+\.\d+\n$")

    def test_files_that_cannot_be_read_or_written(self):
        self.assertIn(b"none.json: No such file", hakmem("report", "none.json", status=1).stderr)
        self.assertIn(b"Is a directory", hakmem("report", self.folder, status=1).stderr)
        there = self.write("there", "as it was")
        for command in ("report", "pprof", "folded", "speedscope", "prometheus"):
            done = hakmem(command, "-o", self.folder / "no" / "x", self.file, status=1)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            if os.path.exists("/dev/full"):
                done = hakmem(command, "-o", "/dev/full", self.file, status=1)
                self.assertIn(b"/dev/full", done.stderr)
            hakmem(command, "-o", there, "none.json", status=1)
        self.assertEqual(there.read_text(), "as it was")
        hakmem("report", "-o", there, self.file)
        self.assertIn("process 71", there.read_text())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.json", "there"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
