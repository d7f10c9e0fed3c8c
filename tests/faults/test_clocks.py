"""Clocks that stand still, jump or go back, in whole programs: launchers, the shim and Python with learners,
profiles and the live view, and the commands that look at them.

test_clocks.py NAME=PATH...: what was built; `clock` is the library of support/clock.c.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILT = dict(word.split("=", 1) for word in sys.argv[1:])
del sys.argv[1:]
YEAR = 366 * 86400
# What the program writes into the clocks' file at a quarter, half and three quarters of its way.
COURSES = {
    "still": ["still still"] * 3,
    "ahead": [f"{n * YEAR} {n * YEAR}" for n in (1, 2, 200)],
    "back": [f"{YEAR} {YEAR}", "0 0", f"-{YEAR} -{YEAR}"],
    "to and fro": [f"-{YEAR} {YEAR}", f"{YEAR} -{YEAR}", "still still"],
}

LUA = """
local hakmem = package.preload.hakmem and require("hakmem")
local kept, name = {}, os.getenv("CLOCK_FILE")
local function work()
  for i = 1, 30000 do kept[i % 500] = string.rep("x", i % 3000) .. i end
  local big = string.rep("y", 3000000)
  kept = {}
  collectgarbage()
end
work()
for i = 1, #arg do
  local file = io.open(name, "w")
  file:write(arg[i])
  file:close()
  if hakmem and hakmem.profile then hakmem.profile.mark("m" .. i) end
  work()
end
print("whole")
"""
PYTHON = """
import os, sys, threading
kept = {}
def work():
    for i in range(20000): kept[i % 500] = bytes(i % 3000)
    big = bytearray(3000000)
    kept.clear()
work()
for words in sys.argv[1:]:
    with open(os.environ["CLOCK_FILE"], "w") as file: file.write(words)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
print("whole")
"""
WAITS = "for word in io.lines() do print(word) io.flush() end"


class Clocks(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.clock = self.file("clock", "0 0")

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def environment(self, **more):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "HAKMEM", "LUA_"))}
        preload = ":".join(p for p in (BUILT["clock"], more.pop("LD_PRELOAD", "")) if p)
        return plain | more | {"LD_PRELOAD": preload, "CLOCK_FILE": self.clock}

    def run_course(self, command, words, **variables):
        self.file("clock", "0 0")
        done = subprocess.run(
            [*command, *words],
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment(**variables),
        )
        self.assertEqual((done.returncode, done.stdout), (0, "whole\n"), done.stderr)
        self.assertEqual(done.stderr, "")

    def look_at_report(self, name):
        with open(os.path.join(self.dir, name)) as file:
            report = json.load(file)
        self.assertTrue(report["contexts"])
        return report

    def look_at_learned(self, name):
        """No time is that of a difference that went below 0."""
        with open(os.path.join(self.dir, name)) as file:
            for seconds in re.findall(r"^# window \d+, (\S+) s:", file.read(), re.M):
                self.assertLess(abs(float(seconds)), 1e10)
        os.unlink(os.path.join(self.dir, name))

    def test_the_clock_is_the_tests(self):
        program = "import time; print(time.time(), time.monotonic())"
        command = [sys.executable, "-c", program]
        for words, low, high in (
            (f"-{YEAR} {200 * YEAR}", 0, 200 * YEAR),
            ("0 -9999999999", time.time() - 1, 0),
        ):
            self.file("clock", words)
            out = subprocess.run(
                command, capture_output=True, text=True, check=True, env=self.environment()
            ).stdout
            real, steady = map(float, out.split())
            self.assertGreaterEqual(real, low)
            self.assertLess(real, time.time() - (YEAR - 9 if low == 0 else -9))
            self.assertTrue(high <= steady < high + YEAR)

    def test_lua(self):
        script = self.file("script.lua", LUA)
        for name in ("haklua5.1", "haklua5.4", "hakluajit"):
            for course, words in COURSES.items() if name in BUILT else ():
                with self.subTest(name, course=course):
                    options = (
                        "--hak-learn=learned",
                        "--hak-live=on",
                        "--hak-profile=p.json,4K",
                        "--hak-report=r.txt",
                    )
                    self.run_course([BUILT[name], *options, script], words)
                    self.look_at_learned("learned")
                    self.look_at_report("p.json")

    def test_shim(self):
        if "shim" not in BUILT:
            self.skipTest("the shim was not built")
        script = self.file("program.py", PYTHON)
        settings = "report=r.txt,profile=p.json,rate=4K,live=on,learn=learned,trim=1"
        for course, words in COURSES.items():
            with self.subTest(course):
                variables = {"LD_PRELOAD": BUILT["shim"], "HAKMEM": settings, "PYTHONMALLOC": "malloc"}
                self.run_course(["/usr/bin/python3", "-S", script], words, **variables)
                self.look_at_learned("learned")
                self.look_at_report("p.json")

    def test_python(self):
        if "python" not in BUILT:
            self.skipTest("the Python binding was not built")
        script = self.file("program.py", PYTHON)
        options = ["--all", "--labels=site", "--profile=64K", "--live", "--learn=learned", "--report=r.json"]
        for course, words in COURSES.items():
            with self.subTest(course):
                command = [os.path.realpath(sys.executable), "-m", "hakmem", "run", *options, script]
                self.run_course(command, words, PYTHONPATH=BUILT["python"])
                self.look_at_learned("learned")
                self.look_at_report("r.json")

    def test_a_look_at_a_program_that_waits_ends_in_time(self):
        """The clock of the day is an hour ahead of the kernel's, and so is the end of a wait by it."""
        if "command" not in BUILT or "haklua5.4" not in BUILT:
            self.skipTest("the command or the launcher was not built")
        script = self.file("waits.lua", WAITS)
        self.file("clock", "3600 0")
        with subprocess.Popen(
            [BUILT["haklua5.4"], "--hak-live=on", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.dir,
            env=self.environment(),
        ) as program:
            self.addCleanup(program.kill)
            print("ready", file=program.stdin, flush=True)
            self.assertEqual(program.stdout.readline(), "ready\n")
            time.sleep(0.2)  # until it reads, where nothing is asked of memory
            command = [BUILT["command"], "attach", str(program.pid)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertIn("the process gave no report", done.stderr)
            program.stdin.close()
            self.assertEqual(program.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
