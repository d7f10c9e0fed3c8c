"""The launchers from the outside: test_launcher.py PROGRAM FOLDER

FOLDER has the module of wrapper.c for the runtime.

What they have beside the interpreter: options, reports, limits, the module. test_stock.py has the rest.
"""

import json
import os
import re
import resource
import subprocess
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import probes  # noqa: E402
from outside import FolderCase, environment  # noqa: E402
from sizes import NONE, SIZES  # noqa: E402

PROGRAM = sys.argv.pop(1)
WRAPPER = os.path.join(sys.argv.pop(1), "?.so")
NAME = os.path.basename(PROGRAM)
ASAN = b"__asan_init" in open(PROGRAM, "rb").read()
LUAJIT = NAME == "hakluajit"
PUC51 = NAME == "haklua5.1"
PUC52 = NAME == "haklua5.2"

REPORT = re.compile(r"^hakmem \d+\.\d+\.\d+: .*\d+ bytes in \d+ blocks", re.M)


# string.buffer of older LuaJITs gives the collector no turn.
BUFFERS = """
local there, buffer = pcall(require, "string.buffer")
local ways = there and {
    reserve = function() buffer.new():reserve(65536) end,
    size = function() buffer.new(65536) end,
    put = function() buffer.new():put(("x"):rep(60000)) end,
    many = function() local b = buffer.new() for k = 1, 20 do b:put(("y"):rep(3000)) end b:get(100) end,
}
if there then for i = 1, 1000 do ways[arg[1]]() end end
print(there and arg[1] or "none")
"""


class Case(FolderCase):
    def start(self, program, args, stdin="", env=None, preexec_fn=None):
        return subprocess.run(
            [program, *args],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.dir,
            env=environment(**(env or {})),
            timeout=120,
            preexec_fn=preexec_fn,
        )

    def run_hak(self, *args, **more):
        return self.start(PROGRAM, args, **more)


class Options(Case):
    """What the launchers add."""

    def error(self, *args):
        done = self.run_hak(*args)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        first, _, rest = done.stderr.partition("\n")
        self.assertTrue(first.startswith(PROGRAM + ": "), done.stderr)
        return first, rest

    def one_line(self, *args):
        first, rest = self.error(*args)
        self.assertEqual(rest, "")
        return first

    def test_bad_options(self):
        for option, what in (
            ("-x", "unrecognized option '-x'"),
            ("--nosuch", "unrecognized option '--nosuch'"),
            ("-vx", "unrecognized option '-vx'"),
            ("-e", "'-e' needs argument"),
            ("-l", "'-l' needs argument"),
        ):
            first, rest = self.error(option)
            self.assertEqual(first, PROGRAM + ": " + what)
            self.assertTrue(rest.startswith(f"usage: {PROGRAM} [options]"), rest)
            self.assertIn("\n  --hak-report[=file] ", rest)
        for option in ("limit", "labels", "profile", "live", "mode", "policy", "learn", "memory", "price"):
            for value in (("64M",), ()):
                message = self.one_line("--hak-" + option, *value, "-e", "print(1)")
                start = f"{PROGRAM}: '--hak-{option}' needs its value in the same word, behind =: --hak-{option}="
                self.assertTrue(message.startswith(start), message)
                done = self.run_hak(message.split()[-1], "-e", "")  # what it says is no unknown option
                self.assertNotIn("unrecognized", done.stderr)
                self.assertNotIn("needs", done.stderr)
        for option in ("--hak-", "--hak-reports", "--hak-limits", "--hak-nosuch=1", "--hak-shared=1"):
            message = self.one_line(option, "-e", "print(1)")
            self.assertIn(f"unrecognized option '{option}'", message)
            self.assertIn("--hak-report[=file] --hak-limit=size --hak-labels=on|off --hak-profile=file[,rate]", message)
        for size in NONE:
            self.assertIn(f"--hak-limit: '{size}' is ", self.one_line("--hak-limit=" + size))
            self.assertIn(f"--hak-reserve: '{size}' is ", self.one_line("--hak-reserve=" + size))
        for size in ("0", "1M", "2T"):
            self.assertIn("a size from 4M to 1T expected", self.one_line("--hak-reserve=" + size))
        for value in ("", "yes", "ON", "offf"):
            self.assertIn("on or off expected", self.one_line("--hak-labels=" + value))
        self.assertIn("the name of a file expected", self.one_line("--hak-report="))
        self.assertIn(
            "No such file or directory", self.one_line("--hak-report=/nosuch/dir/file", "-e", "print(1)")
        )

    def kept(self, *args):
        """Bytes that are kept of freed strings."""
        done = self.run_hak(
            *args,
            "-e",
            "for i = 1, 4 do local s = ('x'):rep(2^21) s = nil collectgarbage() collectgarbage() end "
            "print(require 'hakmem'.stats().cached_bytes)",
        )
        self.assertEqual(done.stderr, "")
        return int(done.stdout)

    def test_a_mode_and_a_policy_act(self):
        self.write("none", "hakmem-policy 1\nbig_cache none\nmagazine none\n")
        self.write("much", "hakmem-policy 1\nmode fast\n")
        self.assertGreater(self.kept(), 1 << 21)
        for args in (["--hak-mode=minimal"], ["--hak-policy=none"], ["--hak-mode=fast", "--hak-policy=none"]):
            self.assertLess(self.kept(*args), 1 << 20, args)
        for args in (["--hak-mode=fast"], ["--hak-mode=minimal", "--hak-policy=much"], ["--hak-mode=learning"]):
            self.assertGreater(self.kept(*args), 1 << 21, args)

    def test_a_policy_that_is_none(self):
        self.write("p", "hakmem-policy 1\n\nmagazine 1\n")
        self.assertEqual(
            self.one_line("--hak-policy=p", "-e", "print(1)"),
            f"{PROGRAM}: --hak-policy: p:3: magazine: 2 to 128, or none (HAK_NONE)",
        )
        self.assertEqual(
            self.one_line("--hak-policy=nosuch", "-e", "print(1)"),
            f"{PROGRAM}: --hak-policy: nosuch: No such file or directory",
        )
        self.assertEqual(
            self.one_line("--hak-policy="), f"{PROGRAM}: --hak-policy=: the name of a file expected"
        )
        self.assertEqual(
            self.one_line("--hak-mode=quick"),
            f"{PROGRAM}: --hak-mode: the mode 'quick' is none of balanced, minimal, fast, lean, learning, research",
        )

    def faults(self, *args):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        done = self.run_hak(*args)
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before

    def read(self, name):
        with open(os.path.join(self.dir, name)) as f:
            return f.read()

    @unittest.skipIf(ASAN, "AddressSanitizer has page faults of its own")
    def test_what_one_start_learns_serves_the_next(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/lua/learn.lua")
        without = self.faults(program, "500000")
        first = self.faults("--hak-learn=p", program, "500000")
        self.assertRegex(self.read("p"), r"(?m)^hakmem-policy 1\nmode fast\nexpected_bytes \d+M\n\Z")
        second = self.faults("--hak-learn=p", program, "500000")
        self.assertRegex(self.read("p"), r"(?m)^expected_bytes \d+M\n\Z")
        try:
            with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
                huge = "[never]" not in f.read()
        except OSError:
            huge = False
        if huge:
            self.assertLess(first, without * 0.7)
            self.assertLess(second, first * 1.1)
        # A small heap is not expected to be large again.
        self.faults("--hak-learn=p", program, "1000")
        self.assertRegex(self.read("p"), r"(?m)^expected_bytes none\n\Z")

    def test_a_learned_mode_is_what_the_next_start_begins_with(self):
        waves = "for i = 1, 20 do local s = ('x'):rep(3000000 + i) end"
        faults = {}
        for mode in ("minimal", "fast"):
            self.write("p", f"hakmem-policy 1\nmode {mode}\n")
            faults[mode] = self.faults("--hak-learn=p", "-e", waves)
            self.assertIn(f"hakmem-policy 1\nmode {mode}\n", self.read("p"))
        self.assertGreater(faults["minimal"], 2 * faults["fast"])

    def test_learning_writes_its_file_however_the_program_ends(self):
        self.write("bad.lua", "error('x')")
        for args in (["-e", "os.exit(0)"], ["-e", "require 'hakmem'.tick(3)"], ["bad.lua"]):
            if os.path.exists(os.path.join(self.dir, "p")):
                os.remove(os.path.join(self.dir, "p"))
            self.run_hak("--hak-learn=p", *args)
            self.assertRegex(self.read("p"), r"\Ahakmem-policy 1\nmode fast\n(expected_bytes 1M\n)?\Z")

    def test_research_tells_each_window(self):
        wait = "local h = require 'hakmem' local t = os.time() while os.time() < t + 3 do h.tick() end"
        self.assertRegex(self.run_hak("--hak-mode=research", "-e", wait).stderr, r"# window 1, .* MiB committed")
        self.assertEqual(self.run_hak("--hak-mode=learning", "-e", wait).stderr, "")
        self.run_hak("--hak-mode=research", "--hak-learn=p", "--hak-profile=r", "-e", wait)
        self.assertRegex(self.read("p"), r"\A# window 1, .* MiB committed.*\n(#.*\n)*hakmem-policy 1\nmode fast\n")
        context = json.loads(self.read("r"))["contexts"][0]
        self.assertGreaterEqual(len(context["timeline"]), 1)
        self.assertEqual(context["decisions"], [])

    def test_a_program_that_never_ticks_is_learned_from(self):
        waste = "local t = os.clock() while os.clock() < t + 3 do local a = {} for i = 1, 100 do a[i] = {} end end"
        self.run_hak("--hak-mode=research", "--hak-learn=p", "-e", waste)
        self.assertRegex(self.read("p"), r"\A# window 1, .* MiB committed")

    def test_what_memory_is_worth(self):
        for value, text in (("dear", "price 1000\n"), ("8M", "mode fast\nbig_cache 4M\nretained_bytes 4M\nretained_percent none\nprice 5\nmemory 8M\n")):
            if os.path.exists(os.path.join(self.dir, "p")):
                os.remove(os.path.join(self.dir, "p"))
            self.run_hak("--hak-learn=p", f"--hak-memory={value}", "-e", "")
            lines = [line for line in self.read("p").splitlines(True) if not line.startswith("expected_bytes")]
            self.assertEqual("".join(lines), "hakmem-policy 1\n" + text)
        self.run_hak("--hak-learn=p", "--hak-price=123", "-e", "")
        self.assertIn("\nprice 123\n", self.read("p"))
        wave = """local t = {} for i = 1, 500 do t[i] = ('x'):rep(60000 + i) end t = nil collectgarbage() collectgarbage()
            print(require 'hakmem'.stats().retained_bytes)"""
        retained = {value: int(self.run_hak(f"--hak-memory={value}", "-e", wave).stdout) for value in ("1M", "cheap")}
        self.assertLess(retained["1M"], 1 << 20)
        self.assertGreater(retained["cheap"], 16 << 20)
        what = "cheap, normal, dear or a size from 1M to 1T expected"
        for value in ("", "costly", "4K", "2T"):
            self.assertEqual(self.one_line(f"--hak-memory={value}", "-e", ""), f"{PROGRAM}: --hak-memory: '{value}': {what}")
        what = "1 to 1000000 expected, millionths of the CPU time for a MiB"
        for value in ("", "0", "1000001", "0.5"):
            self.assertEqual(self.one_line(f"--hak-price={value}", "-e", ""), f"{PROGRAM}: --hak-price: '{value}': {what}")

    def test_a_file_to_learn_into_that_is_none(self):
        self.write("p", "hakmem-policy 1\nx\n")
        for option, what in (
            ("--hak-learn=", "--hak-learn=: the name of a file expected"),
            ("--hak-learn=p", "--hak-learn: p:2: 'x' is unknown"),
            ("--hak-learn=no/such", "--hak-learn: no/such: No such file or directory"),
        ):
            self.assertEqual(self.one_line(option, "-e", "print(1)"), f"{PROGRAM}: {what}")

    def test_a_file_to_learn_into_that_cannot_be_written(self):
        done = subprocess.run(["bash", "-c", 'ulimit -f 0; "$@" 2>&1 | cat; exit ${PIPESTATUS[0]}', "-",
                               PROGRAM, "--hak-learn=p", "-e", "print(1)"], cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.replace("1\n", "", 1), f"{PROGRAM}: cannot write what was learned: {os.path.realpath(self.dir)}/p: File too large\n")

    def test_a_file_to_learn_into_after_the_program_changed_its_directory(self):
        code = "local ok, ffi = pcall(require, 'ffi') if not ok then os.exit(9) end ffi.cdef'int chdir(const char *);' ffi.C.chdir('/')"
        if self.run_hak("--hak-learn=p", "-e", code).returncode == 9:
            self.skipTest("nothing here changes the directory")
        self.assertIn("hakmem-policy 1\n", self.read("p"))

    def test_a_heap_for_all_threads(self):
        code = "print(pcall(function() return type(require 'hakmem.adopt' { shared = true }.stats()) end))"
        self.assertEqual(self.run_hak("--hak-shared", "-e", code).stdout, "true\ttable\n")
        self.assertIn("the heap of this state is one thread's alone already", self.run_hak("-e", code).stdout)
        done = self.run_hak("--hak-shared", "--hak-limit=8M", "--hak-report", "-e",
                            "print(pcall(function() local t = {} for i = 1, 1e6 do t[i] = { i } end end))")
        self.assertEqual(done.stdout, "false\tnot enough memory\n")
        self.check_report(done.stderr)
        self.assertEqual(
            self.one_line("--hak-shared", "--hak-profile=p", "-e", "print(1)"),
            f"{PROGRAM}: --hak-shared: there are no profiles of states that share a heap",
        )

    def test_options_are_not_shown_to_the_program(self):
        self.write(
            "a.lua", "local n = 0 for _ in pairs(arg) do n = n + 1 end print(n, arg[0], arg[1], arg[-1])"
        )
        done = self.run_hak("--hak-limit=64M", "--hak-labels=off", "a.lua", "--hak-report")
        self.assertEqual(done.stdout, f"3\ta.lua\t--hak-report\t{PROGRAM}\n")
        self.assertEqual(done.stderr, "")

    def rows(self, text, indent="  "):
        rows = {}
        for line in text.splitlines():
            m = re.match(indent + r"(\S.*?) +(\d+)\s", line)
            if m:
                rows[m.group(1)] = int(m.group(2))
        return rows

    def check_report(self, text, labels=True):
        self.assertRegex(text, REPORT)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)
        rows = self.rows(text)
        total = {
            k: rows.pop(k)
            for k in (
                *("live", "cached", "metadata", "committed", "released", "retained"),
                *("peak live", "failures", "process resident"),
            )
        }
        for name in ("soft limit", "hard limit"):
            rows.pop(name, None)
        parts = self.rows(text, " {4}")
        self.assertEqual(sum(parts.values()), total["process resident"])
        self.assertTrue({"stack of the main thread", "hakmem's own tables"} <= set(parts), text)
        self.assertNotIn("not ours", text)
        self.assertEqual(total["live"] + total["cached"] + total["metadata"], total["committed"])
        self.assertGreater(total["process resident"], total["committed"] - total["released"] - (1 << 20))
        self.assertEqual(sum(rows.values()), total["live"])
        self.assertEqual(int(re.search(r"(\d+) bytes in", text).group(1)), total["live"])
        if labels:
            self.assertIn("string", rows)
            self.assertIn("table", rows)
            self.assertNotIn("unlabelled", rows)
        else:
            self.assertEqual(list(rows), ["unlabelled"])
            self.assertIn("labels are off", text)
        return rows

    def test_report(self):
        done = self.run_hak(
            "--hak-report", "-e", "t = {} for i = 1, 100000 do t[i] = { i } end io.write('out')"
        )
        self.assertEqual(done.stdout, "out")
        rows = self.check_report(done.stderr)
        self.assertGreater(rows["table"], 100000 * 16)
        self.check_report(
            self.run_hak("--hak-report", "--hak-labels=off", "-e", "x = 1").stderr, labels=False
        )
        self.check_report(self.run_hak("--hak-labels=on", "--hak-report", "-e", "x = 1").stderr)
        self.assertEqual(self.run_hak("-e", "x = 1").stderr, "")

    def test_windows_by_the_clock(self):
        code = (
            "local kept, to = {}, os.clock() + 1.5 while os.clock() < to do for i = 1, 300 do local t = {i} end "
            "for i = 1, 3 do kept[#kept + 1] = ('x'):rep(100) .. #kept end end"
        )
        self.run_hak("--hak-profile=p,4K", "--hak-profile-window=100ms", "-e", code)
        context = json.loads(self.read("p"))["contexts"][0]
        self.assertGreaterEqual(len(context["marks"]), 5)
        self.assertIn(context["profile"]["window_ns"], [100_000_000 << n for n in range(8)])  # twice as long once there are 32
        self.assertTrue(any(sum(h["kept"]) > 0 for h in context["histories"]))
        for options, window in (([], 60 * 10**9), (["--hak-profile-window=off"], None)):
            self.run_hak("--hak-profile=p", *options, "-e", "x = 1")
            self.assertEqual(json.loads(self.read("p"))["contexts"][0]["profile"].get("window_ns"), window)
        self.assertIn("'5x' is no time", self.one_line("--hak-profile=p", "--hak-profile-window=5x", "-e", "x = 1"))
        self.assertIn("there is no --hak-profile", self.one_line("--hak-profile-window=5s", "-e", "x = 1"))

    def test_probes(self):
        if not os.uname().machine in ("x86_64", "aarch64"):
            self.assertIn("there are no probes", self.one_line("--hak-probes=on", "-e", "x = 1"))
            return
        code = "local t = {} for i = 1, 20000 do t[i] = { i } end print(#t)"
        for options in ["on"], ["4K"], ["off"], ["on", "--hak-profile=p,4K"], ["on", "--hak-profile=p,exact", "--hak-live=on"], [
            "4K", "--hak-profile-window=5m"]:
            done = self.run_hak(f"--hak-probes={options[0]}", *options[1:], "-e", code)
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("20000\n", "", 0), options)
        for options, what in (
            (["--hak-probes"], "--hak-probes=on"),
            (["--hak-probes=maybe"], "'maybe' "),
            (["--hak-probes=10"], "the rate '10' is not from 1K to 1T"),
            (["--hak-probes=4K", "--hak-profile=p"], "with the rate of --hak-profile"),
            (["--hak-probes=on", "--hak-profile=p,lines"], "a profile by line takes no samples"),
            (["--hak-probes=on", "--hak-shared"], "no profiles of states that share a heap"),
            (["--hak-probes=off", "--hak-profile-window=5s"], "there is no --hak-profile"),
        ):
            self.assertIn(what, self.one_line(*options, "-e", "x = 1"))

    @unittest.skipIf(ASAN or not probes.there, "a debugger and no sanitizer")
    def test_a_debugger_stops_at_probes(self):
        code = "local t = {} for i = 1, 20000 do t[i] = { i } end print('end')"
        for options, told in (["--hak-probes=4K"], True), (["--hak-profile=p,4K"], True), ([], False):
            seen = probes.stops([PROGRAM, *options, "-e", code], cwd=self.dir, env=environment())
            if seen is None:
                self.skipTest("nothing may be traced here")
            sample, freed, text = seen
            self.assertIn("end\n", text)
            self.assertEqual((bool(sample), bool(freed)), (told, told), text)
            if told:
                self.assertTrue(sample[0] > 4096 and sample[2] >= max(sample[1], 4096) and freed[0] > 4096, seen)

    def test_the_parts_of_resident_memory_sum_up_to_it(self):
        code = "t = {} for i = 1, 3e5 do t[i] = 'text ' .. i end"
        self.run_hak("--hak-profile=p", "-e", code)
        memory = json.loads(self.read("p"))["memory"]
        total = sum(part["bytes"] for part in memory["parts"])
        self.assertAlmostEqual(total, memory["resident_bytes"], delta=0.02 * memory["resident_bytes"])
        kinds = {part["kind"] for part in memory["parts"]}
        self.assertTrue({"live", "metadata", "file", "stacks"} <= kinds, kinds)
        self.assertIn("live: string", {part["name"] for part in memory["parts"]})
        self.assertTrue(all(part["hint"] and part["bytes"] for part in memory["parts"]))

    def test_report_file(self):
        path = os.path.join(self.dir, "report.txt")
        done = self.run_hak("--hak-report=" + path, "-e", "x = 1")
        self.assertEqual(done.stderr, "")
        with open(path) as f:
            self.check_report(f.read())

    def test_report_file_is_whole_or_the_old_one(self):
        path, link = os.path.join(self.dir, "report.txt"), os.path.join(self.dir, "link")
        for old in (None, "from before\n"):
            if old is not None:
                with open(path, "w") as f:
                    f.write(old)
                os.chmod(path, 0o600)
            running = subprocess.Popen(
                [PROGRAM, "--hak-report=" + path, "-e", "print('here') io.stdout:flush() io.read()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self.assertEqual(running.stdout.readline(), b"here\n")
            running.kill()
            running.communicate()
            self.assertEqual(os.listdir(self.dir), ["report.txt"] if old else [])
            if old is not None:
                with open(path) as f:
                    self.assertEqual(f.read(), old)
        # Where a link leads, with the old file's mode, by a name that is relative to where the program began.
        os.symlink("report.txt", link)
        self.assertEqual(self.run_hak("--hak-report=link", "-e", "x = 1").stderr, "")
        self.assertEqual(sorted(os.listdir(self.dir)), ["link", "report.txt"])
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path) as f:
            self.check_report(f.read())

    def test_report_on_an_open_file(self):
        path = os.path.join(self.dir, "out")
        with open(path, "w") as out:
            subprocess.run([PROGRAM, "--hak-report=/dev/stdout", "-e", "x = 1"], stdout=out, check=True, timeout=60)
        self.assertEqual(os.listdir(self.dir), ["out"])
        with open(path) as f:
            self.check_report(f.read())

    def test_report_file_that_cannot_be_is_told_at_the_start(self):
        for name, why in (
            (self.dir, "Is a directory"),
            (os.path.join(self.dir, "new/"), "Is a directory"),
            (os.path.join(self.dir, "no/file"), "No such file or directory"),
        ):
            self.assertIn(why, self.one_line("--hak-report=" + name, "-e", "print(1)"))
        self.assertEqual(os.listdir(self.dir), [])

    def test_report_at_every_end(self):
        ends = {
            "return": 0,
            "os.exit()": 0,
            "os.exit(7)": 7,
            "os.exit(9, true)": 9,
            "error('stop')": 1,
            "syntax error": 1,
            "coroutine.wrap(function() os.exit(5) end)()": 5,
        }
        if LUAJIT:
            ends["require('ffi').cdef('void exit(int);') require('ffi').C.exit(4)"] = 4
        for code, status in ends.items():
            with self.subTest(code):
                done = self.run_hak("--hak-report", "-e", code)
                self.assertEqual(done.returncode, status)
                self.assertEqual(len(REPORT.findall(done.stderr)), 1)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_report_that_cannot_be_written(self):
        ends = {"x = 1": 1, "os.exit()": 1, "os.exit(0)": 1, "os.exit(7)": 7, "os.exit(0, true)": 1, "error('x')": 1}
        if not PUC51:
            ends.update({"os.exit(true, true)": 1, "os.exit(true)": 1, "os.exit(false)": 1})
        if LUAJIT:
            ends["require('ffi').cdef('void exit(int);') require('ffi').C.exit(0)"] = 1
        for code, status in ends.items():
            with self.subTest(code):
                done = self.run_hak("--hak-report=/dev/full", "-e", "io.write('out') " + code)
                self.assertEqual(done.stderr.count(PROGRAM + ": cannot write the report: No space left on device\n"), 1,
                                 done.stderr)
                self.assertEqual((done.stdout, done.returncode), ("out", status))

    @unittest.skipUnless(LUAJIT, "no fork in Lua")
    def test_a_forked_child_leaves_the_reports_to_its_parent(self):
        self.write("fork.lua", """
            local ffi = require "ffi"
            ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void); int getppid(void);"
            kept = {}
            for i = 1, 20000 do kept[i] = { i } end
            local parent = ffi.C.getpid()
            local child = ffi.C.fork()
            if child == 0 then
              kept = nil collectgarbage() collectgarbage()
              if arg[1] == "late" then while ffi.C.getppid() == parent do end end
              if arg[1] == "exit" then os.exit(0) end
              return
            end
            if arg[1] ~= "late" then ffi.C.waitpid(child, nil, 0) end
            print(parent, child)""")
        for how in ("exit", "return", "late"):
            done = self.run_hak("--hak-report=r.txt", "--hak-profile=p.json", "--hak-learn=l", "fork.lua", how)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            parent, child = done.stdout.split()
            self.assertIn(f"process {parent}:", self.read("r.txt"))
            self.assertEqual(json.loads(self.read("p.json"))["process"]["pid"], int(parent))
            self.assertEqual(len(REPORT.findall(self.run_hak("--hak-report", "fork.lua", how).stderr)), 1)

            done = self.run_hak("--hak-report=r-%p.txt", "--hak-profile=p-%p.json", "fork.lua", how)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for process in done.stdout.split():
                self.assertIn(f"process {process}:", self.read(f"r-{process}.txt"))
                self.assertEqual(json.loads(self.read(f"p-{process}.json"))["process"]["pid"], int(process))
            self.assertFalse([name for name in os.listdir(self.dir) if "%" in name])

    def test_an_allocator_of_a_module_around_that_of_the_state(self):
        for option in ("--hak-report=r.txt", "--hak-profile=p.json", "--hak-profile=p.json,exact"):
            with self.subTest(option):
                done = self.run_hak(option, "-e", "require 'wrapper'.wrap() t = {} for i = 1, 20000 do t[i] = { i } end",
                                    env={"LUA_CPATH": WRAPPER})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = self.check_report(self.read("r.txt"))
        labels = json.loads(self.read("p.json"))["contexts"][0]["labels"]
        if ASAN and (LUAJIT or PUC51):
            return  # with it the module's function has a frame of its own, and these two go by who calls
        self.assertGreater(text["table"], 20000 * 16)
        self.assertGreater({l["name"]: l["live_bytes"] for l in labels}["table"], 20000 * 16)

    @unittest.skipIf(ASAN, "AddressSanitizer has terabytes of addresses")
    def test_reserve(self):
        code = """
            local size, writable = 0, 0
            for line in io.lines("/proc/self/maps") do
                local from, to, rights = line:match("^(%x+)-(%x+) (%S+)")
                local n = tonumber(to, 16) - tonumber(from, 16)
                if n < 2^40 then size = size + n end
                if rights:sub(2, 2) == "w" and rights:sub(4) == "p" then writable = writable + n end
            end
            print(string.format("%.0f %.0f %.0f", size, writable, require"hakmem".stats().reserved_bytes))
        """
        for labels in ("on", "off"):
            size, writable, reserved = map(int, self.run_hak("--hak-labels=" + labels, "-e", code).stdout.split())
            self.assertLess(size, 256 << 20)
            self.assertLess(reserved, 32 << 20)
            more = self.run_hak("--hak-labels=" + labels, "--hak-reserve=2Gi", "-e", code)
            more, more_writable, more_reserved = map(int, more.stdout.split())
            self.assertGreater(more - size, 3 << 29)
            self.assertGreaterEqual(more_reserved, 2 << 30)
            for n in (writable, more_writable):
                self.assertLess(n, 32 << 20)

    @unittest.skipIf(ASAN, "AddressSanitizer does not start below them")
    def test_a_limit_of_addresses(self):
        # Those just above powers of two have been too little to start.
        for mib in (64, 72, 130, 136, 264, 520):
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
            done = self.run_hak("-e", "print(#string.rep('x', 2^23))", preexec_fn=limit)
            self.assertEqual((done.returncode, done.stdout), (0, "8388608\n"), done.stderr)

    def test_limit(self):
        grow = "local t = {} for i = 1, 1e6 do t[i] = { i } end print('done')"
        done = self.run_hak("--hak-limit=8M", "-e", grow)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.split("\n")[0], PROGRAM + ": not enough memory")
        for limit in ("0", "1G", "1000000K", "1000000000"):
            self.assertEqual(self.run_hak("--hak-limit=" + limit, "-e", grow).stdout, "done\n")
        caught = f"print(pcall(function() {grow} end)) collectgarbage() print(#string.rep('x', 100000))"
        self.assertEqual(
            self.run_hak("--hak-limit=8M", "-e", caught).stdout, "false\tnot enough memory\n100000\n"
        )
        garbage = "local x for i = 1, 3e6 do x = { i } end print('done')"
        self.assertEqual(self.run_hak("--hak-limit=2M", "-e", garbage).stdout, "done\n")
        self.assertEqual(self.run_hak("--hak-limit=2M", "--hak-labels=off", "-e", garbage).stdout, "done\n")
        self.assertRegex(
            self.run_hak("--hak-limit=3M", "--hak-report", "-e", "x = 1").stderr,
            rf"hard limit +{3 << 20} ",
        )

    def test_sizes(self):
        for size, expected in SIZES:
            done = self.run_hak("--hak-limit=" + size, "--hak-report", "-e", "x = 1")
            self.assertRegex(done.stderr, rf"\n  hard limit +{expected} ")

    def test_a_limit_below_what_the_state_has(self):
        for limit in ("1", "4K"):
            message = self.one_line("--hak-limit=" + limit, "-e", "print(1)")
            m = re.fullmatch(
                re.escape(f"{PROGRAM}: --hak-limit={limit}: ") + r"(\d+) bytes are committed before the program starts",
                message,
            )
            self.assertIsNotNone(m, message)
        needed = int(m.group(1))
        self.assertIn("are committed", self.one_line(f"--hak-limit={needed - 1}", "-e", "print(1)"))
        self.assertEqual(self.run_hak(f"--hak-limit={needed + (64 << 10)}", "-e", "print(1)").stdout, "1\n")

    def test_refused_strings_leave_the_callers_alone(self):
        """LuaJIT writes the message of the error over a local where fast functions are refused a block."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "refused.lua")
        jit = [["-joff"], []] if LUAJIT else [[]]
        seen = set()
        for options in jit:
            for labels in ("on", "off"):
                for count, where in ((6000, "main"), (20000, "main")):
                    for kib in range(300, 900, 50):
                        args = [f"--hak-limit={kib}K", "--hak-labels=" + labels, *options, script, str(count), where]
                        done = self.run_hak(*args)
                        with self.subTest(args=args):
                            self.assertNotIn("damaged", done.stdout)
                            if done.returncode != 0:
                                self.assertIn("not enough memory", done.stderr.split("\n")[0])
                        seen.add(done.stdout)
        self.assertEqual(seen - {""}, {"caught\n", "end\n"})

    def test_closing_under_a_limit(self):
        code = "local function final() print(#string.rep('x', 30000000)) end " + (
            "keep = newproxy(true) getmetatable(keep).__gc = final "
            if LUAJIT or PUC51
            else "keep = setmetatable({}, { __gc = final }) "
        )
        for end in ("",) if PUC51 else ("", "os.exit(0, true)"):  # 5.1 does not close there
            done = self.run_hak("--hak-limit=4M", "-e", code + end)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "30000000\n", ""))

    @unittest.skipIf(LUAJIT or PUC51, "tables have no finalizers")
    def test_finalizers_that_fail_for_want_of_memory(self):
        # 5.2 raises their errors where the launcher collects after an error, too.
        code = (
            "local mt = { __gc = function() local x = { {} } end } for round = 1, 20 do "
            "pcall(function() local t = {} for i = 1, 20000 do t[i] = setmetatable({}, mt) end end) "
            "collectgarbage() end"
        )
        failed = 0
        for kib in range(600, 1100, 50):
            done = self.run_hak(f"--hak-limit={kib}K", "--hak-report", "-e", code)
            with self.subTest(limit=kib):
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertEqual(len(REPORT.findall(done.stderr)), 1)
            failed += done.returncode != 0
        if PUC52:
            self.assertGreater(failed, 0)  # or this test sees nothing

    @unittest.skipUnless(LUAJIT, "of LuaJIT")
    def test_garbage_of_functions_that_give_the_collector_no_turn(self):
        self.write("a.lua", BUFFERS)
        for way, limits in {"reserve": "1M 8M", "size": "1M 8M", "put": "1M 8M", "many": "8M 16M"}.items():
            for jit in [], ["-joff"]:
                for limit in limits.split():
                    with self.subTest(way=way, jit=jit, limit=limit):
                        done = self.run_hak(*jit, "--hak-limit=" + limit, "a.lua", way)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        self.assertIn(done.stdout, (way + "\n", "none\n"))

    def test_module_is_there(self):
        code = (
            "local h = require('hakmem') local l, total = h.labels() local sum = 0 "
            "for _, v in pairs(l) do sum = sum + v.live_bytes end print(sum == total, total > 10000)"
        )
        self.assertEqual(self.run_hak("-e", code, env={"LUA_CPATH": ""}).stdout, "true\ttrue\n")
        done = self.run_hak("-lhakmem", "-e", "require('hakmem').report()")
        self.check_report(done.stderr)

    def test_files_of_the_program_do_not_run_before_it_asks(self):
        # The places of labels are learnt by what requires these libraries, in a state of its own.
        os.mkdir(os.path.join(self.dir, "jit"))
        for name in "ffi.lua", "jit/util.lua", "jit/profile.lua":
            self.write(name, "print(...) os.exit(7)\n")
        done = self.run_hak("--hak-labels=on", "-e", "print(1)")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1\n", ""))

    def test_labels_of_the_program(self):
        code = (
            "local h = require('hakmem') t = h.label('records', function() local t = {} "
            "for i = 1, 5000 do t[i] = { i } end return t end) "
        )
        rows = self.check_report(self.run_hak("--hak-report", "-e", code).stderr)
        self.assertGreater(rows["records"], 5000 * 16)
        done = self.run_hak("--hak-report", "--hak-labels=off", "-e", code)
        self.check_report(done.stderr, labels=False)


if __name__ == "__main__":
    unittest.main()
