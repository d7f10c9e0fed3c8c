"""Profiles with stacks of Python lines."""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import unittest

from hakmem import _launch
from support import FREE_THREADED, ProgramCase, needs_objects, plain_environment, preloaded

# Each function keeps what its name says, from a stack of its own.
PLANTED = """
import threading

class Cache:
    def fill(self, n):
        return [bytearray(1000) for _ in range(n)]

def direct(n):
    return Cache().fill(n)

def around(n):
    return direct(n)

def strings(n):
    return [str(i) * 50 for i in range(n)]

def temporary():
    for _ in range(20):
        around(500)

keep = [direct(6000), around(3000), strings(8000)]
thread = threading.Thread(target=lambda: keep.append(around(2000)), name="worker-7")
thread.start()
thread.join()
temporary()
"""
# Whole stacks of what stays, from the module in; blocks and their asked-for bytes at least.
TRUTH = {
    ("<module>", "direct", "fill"): 6000 * 1000,
    ("<module>", "around", "direct", "fill"): 3000 * 1000,
    ("<module>", "strings"): 8000 * 200,
    ("_bootstrap", "_bootstrap_inner", "run", "<lambda>", "around", "direct", "fill"): 2000 * 1000,
}


def short(function):
    """Of a qualified name, as 3.11 and later have it; comprehensions are functions up to 3.11."""
    return function.rpartition(".")[2]


def stacks(report):
    """Each stack with its functions, the outermost first, without those of comprehensions."""
    (context,) = report["contexts"]
    for stack in context["stacks"]:
        frames = [context["frames"][i] for i in reversed(stack["frames"])]
        names = tuple(short(f["function"]) for f in frames)
        yield tuple(n for n in names if n not in ("<listcomp>", "<dictcomp>", "<genexpr>")), frames, stack


class ProfileCase(ProgramCase):
    def profile(self, text, *options, rate="exact", **more):
        self.run_script(text, f"--profile={rate}", "--report", "r.json", *options, **more)
        return self.loaded("r.json")

    def loaded(self, name):
        return json.loads((self.folder / name).read_text())

    def sums(self, report, *values):
        """Sums by stack: a Counter for each value that is named, or that of live_bytes."""
        found = [collections.Counter() for _ in values or ("live_bytes",)]
        for names, frames, stack in stacks(report):
            if any(f.get("file", "").endswith("program.py") for f in frames):
                for sums, value in zip(found, values or ("live_bytes",)):
                    sums[names] += stack[value]
        return found if len(values) > 1 else found[0]


@unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
class Truth(ProfileCase):
    def near(self, found, truth, most_above=1.12):
        for names, size in truth.items():
            with self.subTest(names):
                self.assertGreaterEqual(found[names], size)
                self.assertLess(found[names], size * most_above)

    def test_exact(self):
        for labels in ("off", "native", "site"):
            with self.subTest(labels):
                report = self.profile(PLANTED, "--all", "--labels", labels)
                live, peak, made = self.sums(report, "live_bytes", "peak_bytes", "alloc_bytes")
                self.near(live, TRUTH | {("<module>", "strings"): 8000 * 240}, 1.3)
                self.assertGreater(peak[("<module>", "direct", "fill")], 6000 * 1000)
                temporary = ("<module>", "temporary", "around", "direct", "fill")
                self.assertGreater(made[temporary], 10000 * 1000)
                self.assertLess(live[temporary], made[temporary] / 100)

    def test_lines_are_those_of_the_calls(self):
        report = self.profile(PLANTED, "--all")
        lines = PLANTED.splitlines()
        seen = set()
        for names, frames, stack in stacks(report):
            own = [f for f in frames if f.get("file", "").endswith("program.py")]
            if names not in TRUTH or stack["live_bytes"] < 100_000:
                continue
            seen.add(names)
            for frame, called in zip(own, own[1:]):
                if short(called["function"]) in ("direct", "around", "fill", "strings"):
                    self.assertIn(short(called["function"]) + "(", lines[frame["line"] - 1])
        self.assertEqual(seen, set(TRUTH))

    def test_sampled_is_near_the_truth(self):
        within = 0
        for names, size in TRUTH.items():
            report = self.profile(PLANTED, "--all", rate="16K")
            if names == ("<module>", "strings"):
                size = size * 1.25
            error = sum(s["live_bytes_error"] ** 2 for n, _, s in stacks(report) if n == names) ** 0.5
            self.assertGreater(error, 0)
            within += abs(self.sums(report)[names] - size * 1.02) < 4 * error
        self.assertGreaterEqual(within, 3)

    def test_the_peak_is_what_was_live_then(self):
        text = """
def early(): return bytearray(30 << 20)
def late(): return bytearray(5 << 20)
x = early()
del x
y = late()
"""
        for rate in ("exact", ""):
            with self.subTest(rate):
                report = self.profile(text, "--all", rate=rate)
                peak, live = self.sums(report, "peak_bytes", "live_bytes")
                early, late = ("<module>", "early"), ("<module>", "late")
                self.assertGreaterEqual(peak[early], 30 << 20)
                self.assertEqual((peak[late], live[early]), (0, 0))
                self.assertGreaterEqual(live[late], 5 << 20)

    def test_threads_and_domains(self):
        report = self.profile(PLANTED, "--all")
        threads = {names: stack.get("thread") for names, _, stack in stacks(report) if names in TRUTH}
        worker = next(names for names in TRUTH if names[0] == "_bootstrap")
        self.assertEqual(threads, dict.fromkeys(TRUTH, "MainThread") | {worker: "worker-7"})
        labels = collections.Counter()
        for _, _, stack in stacks(report):
            labels[stack["label"]] += stack["live_bytes"]
        self.assertLessEqual(set(labels), {"raw", "mem", "obj", "unlabelled"})
        self.assertGreater(labels["obj"] + labels["mem"], 10 << 20)
        self.assertGreater(min(labels["obj"], labels["mem"]), 100_000)
        named = self.profile("import hakmem\nwith hakmem.label('mine'): x = [bytearray(1000) for _ in range(3000)]", "--all")
        self.assertGreater(sum(s["live_bytes"] for _, _, s in stacks(named) if s["label"] == "mine"), 3000 * 1000)

    def test_arenas_without_all(self):
        report = self.profile("x = [str(i) for i in range(100000)]")
        arenas = sum(s["live_bytes"] for n, _, s in stacks(report) if n == ("<module>",) and s["label"] == "arena")
        self.assertGreaterEqual(arenas, 4 << 20)

    def test_deep_stacks_are_cut(self):
        text = "def f(n): return f(n - 1) if n else bytearray(5 << 20)\nx = f({})"
        for depth, cut in ((40, False), (500, True)):
            report = self.profile(text.format(depth), "--all")
            names = max((n for n, _, s in stacks(report) if s["live_bytes"] >= 5 << 20), key=len)
            self.assertEqual(names.count("f"), 64 if cut else depth + 1)
            self.assertEqual(names[0], "(more)" if cut else "<module>")

    def test_code_that_is_gone(self):
        text = """
import gc
keep = []
for i in range(300):
    space = {}
    exec(compile(f"def f{i}(): return bytearray(20000)\\nx = f{i}()", f"gone{i}.py", "exec"), space)
    keep.append(space["x"])
    del space
    gc.collect() if i % 50 == 0 else None
"""
        report = self.profile(text, "--all")
        inner = [frames[-1] for _, frames, s in stacks(report) if frames and s["live_bytes"] >= 20000]
        found = {f.get("file"): f.get("line") for f in inner}
        self.assertEqual({found.get(f"gone{i}.py") for i in range(300)}, {1})

    def test_generators_and_coroutines(self):
        text = """
import asyncio
keep = []
def generator():
    for i in range(100):
        yield bytearray(20000)
async def inner():
    await asyncio.sleep(0)
    keep.append(bytearray(2 << 20))
async def outer():
    await inner()
keep.extend(generator())
asyncio.run(outer())
"""
        report = self.profile(text, "--all")
        found = self.sums(report)
        self.assertGreaterEqual(found[("<module>", "generator")], 100 * 20000)
        tails = [n for n in found if n[-2:] == ("outer", "inner") and found[n] >= 2 << 20]
        self.assertEqual(len(tails), 1)
        self.assertEqual(tails[0][0], "<module>")


@unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
class Extensions(ProfileCase):
    def modules(self, frames):
        """Files of lines and libraries of functions, the outermost first, each once in a row."""
        names = [os.path.basename(f.get("file", "")) if f["kind"] == "interpreter" else f["module"].partition(".")[0] for f in frames]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    @unittest.skipUnless(getattr(json.decoder.scanner.c_make_scanner, "__module__", "") == "_json" and "_json" not in sys.builtin_module_names, "_json is no library")
    def test_functions_of_libraries_are_between_lines(self):
        text = """
import json
def hook(pairs): return bytearray(2000)
x = json.loads("[" + ",".join('{"a": 1}' for _ in range(1000)) + "]", object_hook=hook)
y = json.loads("[" + ",".join('"%s"' % ("x" * 1000) for _ in range(1000)) + "]")
"""
        report = self.profile(text, "--all")
        inner = [(frames, s) for names, frames, s in stacks(report) if names[-1:] == ("hook",) and s["live_bytes"] > 1 << 20]
        self.assertEqual(len(inner), 1)
        self.assertEqual(
            self.modules(inner[0][0]), ["program.py", "__init__.py", "decoder.py", "_json", "program.py"]
        )
        texts = [frames for names, frames, s in stacks(report) if s["live_bytes"] > 1 << 20 and frames[-1]["kind"] == "native"]
        self.assertEqual([self.modules(f) for f in texts], [["program.py", "__init__.py", "decoder.py", "_json"]])

    @unittest.skipUnless(os.path.exists(_launch.MALLOC), "no libhakmem_pymalloc.so here")
    def test_malloc_has_lines(self):
        text = """
import sqlite3
def fill(db):
    db.execute("create table t (a, b)")
    db.executemany("insert into t values (?, ?)", ((i, str(i) * 20) for i in range(20000)))
db = sqlite3.connect(":memory:")
fill(db)
"""
        report = self.profile(text, "--all", "--malloc")
        of_fill = [(frames, s) for names, frames, s in stacks(report) if "fill" in names and s["label"] == "malloc"]
        self.assertGreater(sum(s["live_bytes"] for _, s in of_fill), 1 << 20)
        self.assertIn("_sqlite3", {m for frames, _ in of_fill for m in self.modules(frames)} | set(sys.builtin_module_names))
        every = sum(s["live_bytes"] for _, _, s in stacks(report))
        (context,) = report["contexts"]
        self.assertLess(abs(every - context["stats"]["live_bytes"]), 3 << 20)  # blocks from before the profile began


@unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
class Process(ProfileCase):
    def test_fork(self):
        text = """
import os
def parent(): return bytearray(6 << 20)
def child(): return bytearray(7 << 20)
x = parent()
pid = os.fork()
if pid == 0:
    y = child()
    z = [bytearray(1000) for _ in range(2000)]
else:
    os.waitpid(pid, 0)
"""
        self.run_script(text, "--all", "--profile=exact", "--report", "r-%p.json")
        files = sorted(self.folder.glob("r-*.json"))
        self.assertEqual(len(files), 2)
        sums = [self.sums(json.loads(f.read_text())) for f in files]
        for found in sums:
            self.assertGreaterEqual(found[("<module>", "parent")], 6 << 20)
        self.assertEqual(sorted(s[("<module>", "child")] >= 7 << 20 for s in sums), [False, True])

    def test_threads_at_work(self):
        text = """
import threading
def work(k):
    keep = []
    for i in range(400):
        keep.append([bytearray(k * 100 + 50) for _ in range(100)])
        if i % 3: keep.pop()
    return keep
results = []
threads = [threading.Thread(target=lambda k=k: results.append(work(k)), name=f"w{k % 3}") for k in range(1, 9)]
for t in threads: t.start()
for t in threads: t.join()
"""
        report = self.profile(text, "--all", rate="64K")
        seen = {s["thread"] for n, _, s in stacks(report) if "work" in n}
        self.assertEqual(seen, {"w0", "w1", "w2"})
        live = sum(s["live_bytes"] for n, _, s in stacks(report) if "work" in n)
        truth = sum(134 * 100 * sys.getsizeof(bytearray(k * 100 + 50)) for k in range(1, 9))
        self.assertLess(abs(live - truth), truth * 0.2)

    def test_names_of_threads_that_code_gives(self):
        """They are not asked for in the middle of an allocation."""
        text = """
import threading
class Named(threading.Thread):
    asked, works = 0, False
    @property
    def _name(self):
        Named.asked += 1
        if Named.works: raise AttributeError("_name")
        return "x"
    @_name.setter
    def _name(self, value): pass
    def __init__(self): super().__init__(name="x", target=self.work)
    def work(self):
        before, Named.works = Named.asked, True
        self.kept = [bytearray(1000) for _ in range(3000)]
        Named.works = False
        assert Named.asked == before
        print("fine")
t = Named()
t.start()
t.join()
"""
        report = self.profile(text, "--all")
        names = {s["thread"] for n, _, s in stacks(report) if "work" in n}
        self.assertEqual(len(names), 1)

    def test_many_thread_names(self):
        text = """
import threading
for i in range(400):
    t = threading.Thread(target=lambda: bytearray(100000), name="é" * 60 + str(i)); t.start(); t.join()
    t = threading.Thread(target=lambda: bytearray(100000), name=f"n{i}"); t.start(); t.join()
"""
        names = {s.get("thread") for _, _, s in stacks(self.profile(text, "--all"))}
        self.assertIn("(other threads)", names)
        self.assertIn("n100", names)
        self.assertLess(len(names), 300)

    def test_subinterpreters(self):
        text = """
try:
    import _interpreters as sub
except ImportError:
    import _xxsubinterpreters as sub
import threading
code = "def inside(): return [bytearray(1000) for _ in range(3000)]\\nx = inside()"
ids = [sub.create() for _ in range(3)]
def run(i):
    for _ in range(3): sub.run_string(i, code)
for i in ids: run(i)
threads = [threading.Thread(target=run, args=(i,)) for i in ids]
for t in threads: t.start()
for t in threads: t.join()
for i in ids: sub.destroy(i)
x = bytearray(5 << 20)
"""
        for rate in ("exact", "16K"):
            report = self.profile(text, "--all", rate=rate)
            self.assertGreaterEqual(self.sums(report)[("<module>",)], 5 << 20)
        if sys.version_info >= (3, 12):
            made = sum(s["alloc_bytes"] for n, _, s in stacks(report) if n[-1:] == ("inside",))
            self.assertGreater(made, 18 * 3000 * 1000 * 0.8)

    def test_a_running_program_and_the_end(self):
        text = """
import os, subprocess, sys, threading, time
def held(): return bytearray(9 << 20)
x = held()
subprocess.run([sys.executable, "-m", "hakmem", "report", "--json", str(os.getpid())], stdout=open("live.json", "w"),
               env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("HAKMEM_")})
def busy():
    while True: [bytearray(10000) for _ in range(100)]
threading.Thread(target=busy, daemon=True).start()
time.sleep(0.2)
"""
        self.profile(text, "--all", rate="4K")
        self.assertGreaterEqual(self.sums(self.loaded("live.json"))[("<module>", "held")], 9 << 20)


class Api(ProfileCase):
    def run_api(self, text, **options):
        return self.run_code("import hakmem, json\nfrom hakmem import profile\n" + textwrap.dedent(text), **options)

    LATE = plain_environment()

    def test_start_stop_reset(self):
        for env in (self.LATE, None):  # installed late, and from the beginning
            found = self.run_api(
                """
                hakmem.install("all")
                seen = [profile.running()]
                def made(): return [bytearray(1000) for _ in range(1000)]
                before = made()
                profile.start("exact")
                x = made()
                seen.append(profile.running())
                def live():
                    return round(sum(s.live for s in profile.snapshot().stacks() if any("made" in f.function for f in s.frames)))
                seen.append(1000000 <= live() < 1300000)
                profile.stop()
                y = made()
                seen += [profile.running(), live() < 1300000]
                del x
                seen.append(live() < 10000)
                profile.start("exact")
                x = made()
                seen.append(live() > 1000000)
                profile.reset()
                seen += [live() == 0, profile.running()]
                x = made()
                seen.append(live() > 1000000)
                profile.stop()
                with profile.over():
                    x = made()
                seen += [live() > 1000000, profile.running()]
                print(json.dumps(seen))
                """,
                env=env,
            )
            self.assertEqual(found, [False, True, True, False, True, True, True, True, True, True, True, False])

    def test_options(self):
        found = self.run_api("""
            def f(n): return f(n - 1) if n else bytearray(3 << 20)
            seen = []
            profile.start(mean="1 MiB", depth=7, table="1M", seed=5)
            x = f(20)
            r = profile.snapshot().report["contexts"][0]["profile"]
            deep = profile.snapshot().stacks("peak")[0]
            seen += [r["mean_bytes"], r["mode"], sum(f.function == "f" for f in deep.frames), deep.frames[-1].function]
            print(json.dumps(seen))
        """)
        self.assertEqual(found, [1 << 20, "sampled", 7, "(more)"])

    def test_refused(self):
        found = self.run_api("""
            def why(f, *args, **more):
                try: f(*args, **more)
                except (RuntimeError, ValueError) as error: return str(error)
            seen = [why(f) for f in (profile.stop, profile.mark, profile.reset, profile.snapshot)] + [why(profile.diff, 0)]
            seen += [why(profile.start, "some"), why(profile.start, depth=101), why(profile.start, mean="x"), why(profile.start, mean=5), why(profile.start, mean=-5)]
            seen += [why(hakmem.take_snapshot().stacks), why(hakmem.take_snapshot().verdicts)]
            profile.start()
            seen += [why(profile.start), why(profile.snapshot().stacks, "size")]
            seen += [why(profile.diff, *w) for w in ((1,), (0, 0), (0, 2), (-1,), (0, -1))]
            print(json.dumps(seen))
        """)
        none = "there is no profile"
        self.assertEqual(found[:5], [none] * 5)
        words = ["exact", "depth", "'x'", "mean", "-5", none, none, "runs already", "peak", *["window"] * 5]
        for text, words in zip(found[5:], words, strict=True):
            self.assertIn(words, text)
        done = self.run_code("import hakmem\ntry: hakmem.profile.start()\nexcept RuntimeError as e: print('\"%s\"' % e)", env=self.LATE)
        self.assertEqual(done, "hakmem is not in")

    def test_windows_and_verdicts(self):
        text = """
            kept, cache = [], {}
            def leaks(): kept.append(bytearray(3000))
            def caches(i): cache[i % 10] = bytearray(3000)
            def request(i):
                LEAK
                caches(i)
                return [bytearray(500) for _ in range(50)]
            profile.start("exact")
            numbers = []
            for w in range(12):
                for i in range(30): request(i)
                numbers.append(profile.mark(f"window {w}"))
            found = profile.snapshot()
            leaks = [[v.kind, v.stack.line.function.rpartition(".")[2], v.bytes_a_window > 80000] for v in found.verdicts() if v.kind == "leak"]
            marks = [m["name"] for m in found.report["contexts"][0]["marks"]]
            print(json.dumps([numbers, leaks, marks]))
        """
        numbers, leaks, marks = self.run_api(text.replace("LEAK", "leaks()"))
        self.assertEqual(numbers, list(range(1, 13)))
        self.assertEqual(marks, [f"window {w}" for w in range(12)])
        if not FREE_THREADED:
            self.assertIn(["leak", "leaks", True], leaks)
            self.assertEqual({leak[1] for leak in leaks}, {"leaks"})  # also the list that keeps them
        self.assertEqual(self.run_api(text.replace("LEAK", "pass"))[1], [])

    @unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
    def test_what_changed_between_two_windows(self):
        found = self.run_api("""
            kept = []
            def keeps(n):
                for _ in range(n): kept.append(bytearray(5000))
            def passes():
                for _ in range(10): bytearray(7000)
            def by(stacks, name):
                mine = [s for s in stacks if s.line and s.line.function.rpartition(".")[2] == name]
                return [sum(s.live for s in mine), sum(s.allocated for s in mine), sum(s.peak for s in mine)]
            profile.start("exact")
            keeps(40)
            profile.mark("one"); keeps(20); passes()
            profile.mark("two"); passes()
            profile.mark("three"); kept.clear()
            changes = [profile.diff(1, 2), profile.diff(2, 3), profile.diff(3), profile.diff(0, 4), profile.diff(1)]
            seen = [[by(c, "keeps"), by(c, "passes")] for c in changes]
            first = changes[0][0].line.function.rpartition(".")[2], changes[2][-1].live < -100_000
            right = lambda m: m.live > 0 and m.committed >= m.live and m.resident > 1 << 20 and m.at > 0
            marks = [[m.name, right(m)] for m in profile.marks()]
            print(json.dumps([seen, first, marks, profile.verdicts()]))
        """)
        (grew, passed), (stayed, passed_later), (gone, none), (whole, _), (since, _) = found[0]
        self.assertGreater(grew[0], 100_000)
        self.assertEqual([passed[0], passed_later[0], stayed], [0, 0, [0, 0, 0]])
        self.assertGreaterEqual(passed[1], 70_000)
        self.assertEqual(passed[1], passed_later[1])
        self.assertLess(gone[0], -200_000)
        self.assertEqual(none, [0, 0, 0])
        self.assertEqual(whole[:1] + grew[2:], [0, 0])
        self.assertLess(since[0], -50_000)  # what was kept before window 1 is gone, too
        self.assertEqual(found[1], ["keeps", True])
        self.assertEqual(found[2], [["one", True], ["two", True], ["three", True]])
        self.assertEqual(found[3], [])

    @unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
    def test_snapshots_by_line(self):
        found = self.run_api("""
            def made(): return [bytearray(1000) for _ in range(3000)]
            profile.start("exact")
            before = hakmem.take_snapshot()
            x = made()
            now = hakmem.take_snapshot()
            d = now.compare_to(before, "lineno")[0]
            now.dump("s.json")
            again = hakmem.Snapshot.load("s.json")
            print(json.dumps([d.key, d.size_diff, [str(f) for f in again.stacks()[0].frames][-1], again.statistics("function")[0].key]))
        """)
        self.assertRegex(found[0], r"program.py:4$")
        self.assertGreater(found[1], 3_000_000)
        self.assertRegex(found[2], r"^<module> \(.*program.py:7\)$")

    def test_while_others_allocate(self):
        found = self.run_api("""
            import threading
            on = True
            def work():
                while on: [bytes(i) for i in range(500)]
            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads: t.start()
            for i in range(30):
                profile.start("exact" if i % 3 == 0 else "sampled", mean=4096)
                x = [str(i) for i in range(2000)]
                profile.mark("m")
                profile.snapshot().stacks()
                profile.reset() if i % 2 else None
                profile.stop()
            on = False
            for t in threads: t.join()
            s = hakmem.take_snapshot().parts
            print(json.dumps(sum(l["live_bytes"] for l in s["labels"].values()) - s["stats"]["live_bytes"]))
        """)
        self.assertEqual(found, 0)


HAKMEM = os.environ.get("HAKMEM_COMMAND", "")


@unittest.skipUnless(os.path.exists(HAKMEM), "the command hakmem was not built; HAKMEM_COMMAND may name it")
@unittest.skipIf(FREE_THREADED, "no lines in a free-threaded build")
class Formats(ProfileCase):
    def command(self, *arguments):
        done = subprocess.run([HAKMEM, *arguments], capture_output=True, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
        return done.stdout

    def test_the_command_reads_it(self):
        self.profile(PLANTED.replace("6000", "9000"), "--all")
        os.rename(self.folder / "r.json", self.folder / "more.json")
        report = self.profile(PLANTED, "--all", "--labels", "site", rate="16K")
        folded = self.command("folded", "r.json").decode()
        self.assertRegex(folded, r"(?m)^<module> \([^;]*;direct \([^;]*;Cache\.fill|^<module> \([^;]*;direct \([^;]*;fill")
        self.assertRegex(self.command("report", "r.json").decode(), r"program\.py:\d+\)")
        self.assertRegex(self.command("diff", "r.json", "more.json").decode(), r"program\.py:\d+\)")
        self.assertIn(b"hakmem", self.command("prometheus", "r.json"))
        speedscope = json.loads(self.command("speedscope", "r.json"))
        self.assertIn("fill", {short(f["name"].partition(" ")[0]) for f in speedscope["shared"]["frames"]})
        self.assertEqual(self.command("pprof", "r.json")[:2], b"\x1f\x8b")
        page = subprocess.run([HAKMEM, "html", "r.json"], capture_output=True, cwd=self.folder)
        if page.returncode == 0:  # else it was left out of the build
            self.assertIn(b"Cache.fill" if sys.version_info >= (3, 11) else b"fill", page.stdout)
        # The lines are there beside the profile, for Python.
        shown = self.hakmem("report", "r.json").stdout
        self.assertIn("program.py", shown)
        self.assertEqual(len(report["contexts"]), 1)

    def test_go_tool_pprof(self):
        pprof = os.environ.get("HAKMEM_PPROF")
        if not pprof:
            self.skipTest("HAKMEM_PPROF names no pprof")
        self.profile(PLANTED, "--all")
        (self.folder / "p.pb.gz").write_bytes(self.command("pprof", "r.json"))
        done = subprocess.run([pprof, "-raw", "p.pb.gz"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("inuse_space/bytes", done.stdout)
        self.assertIn("fill", done.stdout)


@unittest.skipUnless(shutil.which("readelf"), "no readelf on this machine")
class Probes(ProfileCase):
    def test_the_hook_has_those_of_samples(self):
        """What they tell is tested with the shim, which has the same."""
        text = subprocess.run(["readelf", "-n", _launch.HOOK], capture_output=True, text=True, check=True).stdout
        notes = re.findall(r"Provider: otel_memory\s+Name: (\S+)\s+Location: 0x\w+, Base: 0x\w+, Semaphore: (0x\w+)\s+Arguments: (.*)", text)
        self.assertEqual(sorted((name, len(arguments.split())) for name, _, arguments in notes), [("alloc", 3), ("free", 1)])
        self.assertTrue(all(int(semaphore, 16) for _, semaphore, _ in notes))


class Options(ProfileCase):
    def test_rates(self):
        for rate, mean in (("", 512 << 10), ("64K", 64 << 10), ("1M", 1 << 20)):
            (context,) = self.profile("x = bytearray(9 << 20)", "--all", rate=rate)["contexts"]
            self.assertEqual((context["profile"]["mode"], context["profile"]["mean_bytes"]), ("sampled", mean))
        (context,) = self.profile("", "--all")["contexts"]
        self.assertEqual(context["profile"]["mode"], "exact")

    def test_without_a_profile(self):
        self.run_script("", "--all", "--report", "r.json")
        self.assertNotIn("profile", self.loaded("r.json")["contexts"][0])

    def test_without_a_rate_before_a_program(self):
        path = self.script("x = bytearray(9 << 20)")
        for more in ([], ["--limit", "1.5G"]):
            self.hakmem("run", "--profile", *more, "--report", "r.json", path)
            self.assertEqual(self.loaded("r.json")["contexts"][0]["profile"]["mode"], "sampled")
        env = self.hakmem("env", "--profile").stdout
        self.assertIn("export HAKMEM_PROFILE=on\n", env)
        self.assertIn("export HAKMEM_PROFILE=64K\n", self.hakmem("env", "--profile=64K").stdout)

    def test_wrong_rates(self):
        for rate in ("x", "-1", "exactly"):
            done = self.hakmem("run", f"--profile={rate}", self.script(""), check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--profile", done.stderr)
            done = self.python("-c", "print(5)", env=preloaded(all_domains=True, profile=rate), check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^hakmem: HAKMEM_PROFILE={rate}: [^\n]*; Python is not started\n$")
        done = self.python("-c", "print(5)", env=preloaded(all_domains=True, profile="5"))
        self.assertRegex(done.stderr, r"HAKMEM_PROFILE=5: mean: 1 KiB to 1 TiB")

    def test_stacks_are_not_in_the_text(self):
        for more in ([], ["--report", "-"]):
            done = self.hakmem("run", "--profile", *more, self.script("print(5)"), check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, "hakmem: --profile needs --report FILE or --live: stacks are not in the text\n")

    @needs_objects
    def test_a_limit_holds(self):
        text = """
keep = []
try:
    while True: keep.append(bytearray(5000))
except MemoryError:
    n = len(keep); keep.clear(); print(n)
"""
        done = self.run_script(text, "--all", "--profile=exact", "--limit", "80M")
        self.assertGreater(int(done.stdout), 5000)

    @needs_objects
    def test_beside_tracemalloc(self):
        text = """
import tracemalloc
tracemalloc.start()
def made(): return [bytearray(1000) for _ in range(5000)]
x = made()
tracemalloc.stop()
y = made()
"""
        report = self.profile(text, "--all")
        if not FREE_THREADED:
            self.assertGreater(self.sums(report)[("<module>", "made")], 10000 * 1000)


if __name__ == "__main__":
    unittest.main()
