"""The launchers from the outside: launcher_test.py PROGRAM

What they share with the interpreter is compared with the interpreter itself, command line by command line.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
NAME = os.path.basename(PROGRAM)
LUAJIT = NAME == "hakluajit"
ORIGINAL = NAME[len("hak") :]
SKIP = 77

REPORT = re.compile(r"^hakmem \d+\.\d+\.\d+: .*\d+ bytes in \d+ blocks", re.M)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def start(self, program, args, stdin="", env=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LUA_")}
        clean.update(env or {})
        return subprocess.run(
            [program, *args],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.dir,
            env=clean,
            timeout=120,
        )

    def run_hak(self, *args, **more):
        return self.start(PROGRAM, args, **more)


class Interpreter(Case):
    """The same command line gives the same output and exit status."""

    def same(self, *args, stdin="", env=None):
        ours, theirs = (self.start(p, args, stdin, env) for p in (PROGRAM, ORIGINAL))

        def plain(text):
            text = text.replace(PROGRAM, "PROGRAM").replace(NAME, "PROGRAM")
            text = re.sub(rf"\b{re.escape(ORIGINAL)}\b", "PROGRAM", text)
            return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)

        self.assertEqual(plain(ours.stdout), plain(theirs.stdout))
        self.assertEqual(plain(ours.stderr), plain(theirs.stderr))
        self.assertEqual(ours.returncode, theirs.returncode)
        return ours

    def test_chunks(self):
        self.assertEqual(
            self.same("-e", "print(1)", "-eprint(2)", "-e", "x = 3", "-e", "print(x)").stdout, "1\n2\n3\n"
        )

    def test_chunk_before_script(self):
        self.write("a.lua", "print(x, ...)")
        self.assertEqual(self.same("-e", "x = 5", "a.lua", "-e", "y").stdout, "5\t-e\ty\n")

    def test_arguments(self):
        self.write(
            "a.lua", "for i = -9, 9 do if arg[i] then print(i, arg[i]) end end print(select('#', ...), ...)"
        )
        self.same("a.lua", "one", "", "--hak-report", "-v")
        self.same("-e", "x = 1", "a.lua")
        self.same("--", "a.lua", "-x")
        self.same("-e", "for i = -9, 9 do if arg[i] then print(i, arg[i]) end end", "-v")
        self.same(stdin="for i = -9, 9 do if arg[i] then print(i, arg[i]) end end")

    def test_options_that_look_like_arguments(self):
        for option in ("-e", "-l"):
            for value in ("--comment", "-x"):
                original, ours = (self.start(p, [option, value]) for p in (ORIGINAL, PROGRAM))
                self.assertEqual(ours.returncode, original.returncode, (option, value))
                if LUAJIT:
                    self.same(option, value)
        original, ours = (self.start(p, ["-Ex", "-e", "print(1)"]) for p in (ORIGINAL, PROGRAM))
        self.assertEqual((ours.stdout, ours.returncode), (original.stdout, original.returncode))

    def test_stdin(self):
        self.same(stdin="print('from stdin', ...)")
        self.same("-", "a", "b", stdin="print(arg[0], ...)")
        self.same(stdin="syntax error here")

    def test_library(self):
        self.write("mod.lua", "print('loaded', ...) return { answer = 42 }")
        self.same("-l", "mod", "-e", "print(package.loaded.mod.answer, mod and mod.answer)")
        self.same("-lmod", "-e", "print(1)")
        self.same("-lnosuchmodule", "-e", "print(1)")
        if not LUAJIT:
            self.same("-l", "m=mod", "-e", "print(m.answer, mod)")

    def test_version(self):
        self.same("-v")
        self.same("-v", "-e", "print(1)")

    def test_interactive(self):
        def results(program, text):
            done = self.start(program, ["-i", "-e", "x = 1"], stdin=text)
            return [line for line in re.sub(r"(^|\n)(>+ ?)+", r"\1", done.stdout).split("\n") if line], done

        text = (
            "print(x)\nx = 5\n=x + 1\nfor i = 1, 2 do\nprint(i)\nend\nerror('bad')\nx = = 1\nprint('end')\n"
        )
        ours, done = results(PROGRAM, text)
        for line in ("1", "6", "2", "end"):
            self.assertIn(line, ours)
        self.assertEqual(done.stderr.split("\n")[0], "stdin:1: bad")
        self.assertIn("stdin:1: bad\nstack traceback:", done.stderr)
        self.assertIn("unexpected symbol near '='", done.stderr)
        self.assertEqual(done.returncode, 0)

        # The end of the input inside of a chunk. (Some lua5.4 print "(null)".)
        if LUAJIT:
            self.same("-i", stdin="print(1)\nprint(\n")
        # Errors of lines do not name the program.
        text = "error('a')\nerror({})\nx = = 1\n"
        ours, theirs = (self.start(p, ["-i"], stdin=text) for p in (PROGRAM, ORIGINAL))
        self.assertEqual(re.sub("0x[0-9a-f]+", "", ours.stderr), re.sub("0x[0-9a-f]+", "", theirs.stderr))

    def test_environment(self):
        name = "LUA_INIT" if LUAJIT else "LUA_INIT_5_4"
        self.write("init.lua", "print('init file')")
        for value in ("print('init')", "@init.lua", "@nosuch.lua", "error('in init')", "syntax error"):
            self.same("-e", "print('main')", env={"LUA_INIT": value})
            self.same("-v", "-e", "print('main')", env={"LUA_INIT": value})
            self.same("-e", "print('main')", env={name: value, "LUA_INIT": value + " "})
            self.same("-E", "-e", "print('main')", env={name: value})
        self.same("-E", "-e", "print(package.path)", env={"LUA_PATH": "./nowhere"})
        self.same("-e", "print(package.path)", env={"LUA_PATH": "./nowhere"})

    def test_errors(self):
        self.write("syntax.lua", "local x = = 1")
        self.write("runtime.lua", "local function f() local t = nil; return t.x end\nlocal y = f() return y")
        self.same("syntax.lua")
        self.same("runtime.lua")
        self.same("nosuch.lua")
        for value in (
            "'text'",
            "{}",
            "nil",
            "setmetatable({}, { __tostring = function() return 'object' end })",
        ):
            self.same("-e", f"error({value})")
        self.same("-e", "print(1)", "-e", "error('stop')", "-e", "print(2)")

    def test_exit_status(self):
        for code in (
            "os.exit()",
            "os.exit(0)",
            "os.exit(7)",
            "os.exit(true)",
            "os.exit(false)",
            "os.exit(3, true)",
            "os.exit(true, true)",
            "os.exit('x')",
        ):
            self.same("-e", "io.write('before ') " + code)

    def test_collector(self):
        if not LUAJIT:
            self.assertEqual(self.same("-e", "print(collectgarbage('incremental'))").stdout, "generational\n")
        self.same("-e", "print(collectgarbage('setpause', 150), collectgarbage('setstepmul', 300))")

    @unittest.skipIf(LUAJIT, "of lua5.4")
    def test_warnings(self):
        self.assertEqual(self.same("-W", "-e", "warn('one', ' two')").stderr, "Lua warning: one two\n")
        self.assertEqual(
            self.same("-e", "warn('one') warn('@on') warn('two') warn('@off') warn('three')").stderr,
            "Lua warning: two\n",
        )

    @unittest.skipUnless(LUAJIT, "of luajit")
    def test_jit_commands(self):
        self.assertEqual(self.same("-joff", "-e", "print((jit.status()))").stdout, "false\n")
        self.same("-jon", "-e", "print((jit.status()))")
        self.same("-j", "flush", "-e", "print(1)")
        self.same("-jnosuchcommand", "-e", "print(1)")
        self.same("-O0", "-e", "print(jit.status())")
        self.same("-O3", "-e", "print(jit.status())")
        self.same("-O-fold,-cse", "-e", "print(jit.status())")
        self.same("-Onosuchflag", "-e", "print(1)")
        self.same("-jv=trace.txt", "-e", "for i = 1, 1000 do end")
        with open(os.path.join(self.dir, "trace.txt")) as f:
            self.assertIn("TRACE", f.read())

    @unittest.skipUnless(LUAJIT, "of luajit")
    def test_bytecode(self):
        self.write("a.lua", "print('bytecode', ...)")
        self.same("-bl", "a.lua")
        self.same("-b", "a.lua", "a.out")
        self.assertEqual(self.same("a.out", "x").stdout, "bytecode\tx\n")
        self.same("-b", "nosuch.lua", "b.out")


class Options(Case):
    """What the launchers add."""

    def error(self, *args):
        done = self.run_hak(*args)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(NAME + ": "), done.stderr)
        return done.stderr

    def test_bad_options(self):
        self.assertIn("unrecognized option '-x'", self.error("-x"))
        self.assertIn("--hak-report[=file]", self.error("-x"))
        self.assertIn("unrecognized option '--nosuch'", self.error("--nosuch"))
        self.assertIn("unrecognized option '-vx'", self.error("-vx"))
        self.assertIn("'-e' needs an argument", self.error("-e"))
        self.assertIn("'-l' needs an argument", self.error("-l"))
        for option in ("--hak-", "--hak-reports", "--hak-limit", "--hak-labels", "--hak-nosuch=1"):
            message = self.error(option, "-e", "print(1)")
            self.assertIn(f"unrecognized option '{option}'", message)
            self.assertIn("--hak-report[=file] --hak-limit=size --hak-labels=on|off", message)
        for size in (
            "",
            "-1",
            "abc",
            "64m",
            "64MB",
            "1.5M",
            "0x10",
            " 5",
            "99999999999999999999",
            "9999999999G",
        ):
            self.assertIn("bytes expected, such as 65536, 512K, 64M or 2G", self.error("--hak-limit=" + size))
        for value in ("", "yes", "ON", "offf"):
            self.assertIn("on or off expected", self.error("--hak-labels=" + value))
        self.assertIn("the name of a file expected", self.error("--hak-report="))
        self.assertIn(
            "No such file or directory", self.error("--hak-report=/nosuch/dir/file", "-e", "print(1)")
        )

    def test_options_are_not_shown_to_the_program(self):
        self.write(
            "a.lua", "local n = 0 for _ in pairs(arg) do n = n + 1 end print(n, arg[0], arg[1], arg[-1])"
        )
        done = self.run_hak("--hak-limit=64M", "--hak-labels=off", "a.lua", "--hak-report")
        self.assertEqual(done.stdout, f"3\ta.lua\t--hak-report\t{PROGRAM}\n")
        self.assertEqual(done.stderr, "")

    def rows(self, text):
        rows = {}
        for line in text.splitlines():
            m = re.match(r"  (\S.*?)  +(\d+)\s", line)
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
            for k in ("live", "cached", "metadata", "committed", "released", "peak live", "process resident")
        }
        for name in ("soft limit", "hard limit", "not ours"):
            rows.pop(name, None)
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

    def test_report_file(self):
        path = os.path.join(self.dir, "report.txt")
        done = self.run_hak("--hak-report=" + path, "-e", "x = 1")
        self.assertEqual(done.stderr, "")
        with open(path) as f:
            self.check_report(f.read())

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

    def test_report_that_cannot_be_written(self):
        if os.path.exists("/dev/full"):
            done = self.run_hak("--hak-report=/dev/full", "-e", "x = 1")
            self.assertIn("cannot write the report", done.stderr)

    def test_limit(self):
        grow = "local t = {} for i = 1, 1e6 do t[i] = { i } end print('done')"
        done = self.run_hak("--hak-limit=8M", "-e", grow)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.split("\n")[0], NAME + ": not enough memory")
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

    def test_closing_under_a_limit(self):
        code = "local function final() print(#string.rep('x', 30000000)) end " + (
            "keep = newproxy(true) getmetatable(keep).__gc = final "
            if LUAJIT
            else "keep = setmetatable({}, { __gc = final }) "
        )
        for end in ("", "os.exit(0, true)"):
            done = self.run_hak("--hak-limit=4M", "-e", code + end)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "30000000\n", ""))

    def test_module_is_there(self):
        code = (
            "local h = require('hakmem') local l, total = h.labels() local sum = 0 "
            "for _, v in pairs(l) do sum = sum + v.live_bytes end print(sum == total, total > 10000)"
        )
        self.assertEqual(self.run_hak("-e", code, env={"LUA_CPATH": ""}).stdout, "true\ttrue\n")
        done = self.run_hak("-lhakmem", "-e", "require('hakmem').report()")
        self.check_report(done.stderr)

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
    if shutil.which(ORIGINAL) is None:
        print("no " + ORIGINAL + " to compare with")
        sys.exit(SKIP)
    unittest.main()
