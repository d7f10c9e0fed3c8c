"""Kernels that refuse: system calls that a filter forbids, and address space that is short. Programs do what they do
elsewhere; what hakmem cannot do then is said in one line, and is no crash.

test_kernel.py NAME=PATH...: the programs that were built; `refuse` is one of them.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILT = dict(word.split("=", 1) for word in sys.argv[1:])
del sys.argv[1:]
CALLS = ("madvise", "mremap", "memfd_create", "membarrier")
FILTERS = (*CALLS, ",".join(CALLS))
MIB = 1 << 20

LUA = """
local kept = {}
for i = 1, 20000 do kept[i % 500] = string.rep("x", i % 3000) end
local big = string.rep("y", 30000000)
local grown = {}
for i = 1, 300000 do grown[i] = i end
local ok = pcall(function() local t = {} for i = 1, 1e9 do t[i] = i .. string.rep("z", 300000) end end)
print(#big, #grown, ok)
"""
PYTHON = """
import threading
kept = {}
def work():
    for i in range(20000): kept[i % 500] = bytes(i % 3000)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
big = bytearray()
for i in range(300): big += bytes(100000)
print(len(kept), len(big))
"""


def needs(name):
    return unittest.skipUnless(name in BUILT, f"{name} was not built")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def run_program(self, *command, refused=None, space=None, data=None, **variables):
        prefix = [BUILT["refuse"], refused] if refused else []

        def limit():
            if space:
                resource.setrlimit(resource.RLIMIT_AS, (space, space))
            if data:
                resource.setrlimit(resource.RLIMIT_DATA, (data, data))

        done = subprocess.run(
            [*prefix, *command],
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=200,
            preexec_fn=limit,
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | variables,
        )
        if refused and done.returncode == 77:
            self.skipTest(done.stderr)
        return done

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class Filters(Case):
    def test_the_filter_refuses(self):
        code = "import ctypes, os\nprint(os.memfd_create('x') > 0)"
        python = os.path.realpath(sys.executable)
        self.assertIn("Operation not permitted", self.run_program(python, "-c", code, refused="memfd_create").stderr)
        self.assertEqual(self.run_program(python, "-c", code, refused="mremap").stdout, "True\n")

    def test_core(self):
        for name in ("smoke", "fork", "stress"):
            if name not in BUILT:
                continue
            for refused in FILTERS:
                with self.subTest(name, refused=refused):
                    arguments = ["2", "20", "2"] if name == "stress" else []
                    done = self.run_program(BUILT[name], *arguments, refused=refused)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_lua(self):
        script = self.file("script.lua", LUA)
        for name in ("haklua5.1", "haklua5.4"):
            for refused in FILTERS if name in BUILT else ():
                with self.subTest(name, refused=refused):
                    options = ("--hak-limit=200M", "--hak-labels=on", "--hak-live=on", "--hak-report=r.txt")
                    done = self.run_program(BUILT[name], *options, "--hak-profile=p.json,4K", script, refused=refused)
                    self.assertEqual((done.returncode, done.stdout), (0, "30000000\t300000\tfalse\n"), done.stderr)
                    with open(os.path.join(self.dir, "p.json")) as file:
                        self.assertTrue(json.load(file)["contexts"])

    @needs("shim")
    def test_shim(self):
        script = self.file("program.py", PYTHON)
        for refused in FILTERS:
            with self.subTest(refused=refused):
                variables = {
                    "LD_PRELOAD": BUILT["shim"],
                    "HAKMEM": "report=r.txt,profile=p.json,limit=512M,check=report,live=on",
                    "PYTHONMALLOC": "malloc",
                }
                done = self.run_program("/usr/bin/python3", script, refused=refused, **variables)
                self.assertEqual((done.returncode, done.stdout), (0, "500 30000000\n"), done.stderr)
                with open(os.path.join(self.dir, "p.json")) as file:
                    self.assertTrue(json.load(file)["contexts"])

    @needs("python")
    def test_python(self):
        script = self.file("program.py", PYTHON)
        interpreter = os.path.realpath(sys.executable)
        for refused in FILTERS:
            with self.subTest(refused=refused):
                options = ("--all", "--labels=site", "--profile=64K", "--limit=512M", "--report", "r.json")
                command = (interpreter, "-m", "hakmem", "run", *options, script)
                done = self.run_program(*command, refused=refused, PYTHONPATH=BUILT["python"])
                self.assertEqual((done.returncode, done.stdout), (0, "500 30000000\n"), done.stderr)
                with open(os.path.join(self.dir, "r.json")) as file:
                    self.assertTrue(json.load(file)["contexts"])


class AddressSpace(Case):
    """A limit of RLIMIT_AS, from too little to start up to enough: an error, or all that is to come out."""

    def refused_or_whole(self, done, expected, words):
        if done.returncode == 0:
            self.assertEqual(done.stdout, expected, done.stderr)
            return True
        self.assertGreater(done.returncode, 0, f"a signal: {done.stderr}")
        self.assertRegex(done.stderr, words)
        return False

    def test_lua(self):
        script = self.file("script.lua", "local t = {} for i = 1, 2000000 do t[i] = i end print(#t)")
        words = "(?i)memory|cannot allocate|cannot map|shared object"
        # 3 MiB are too few for the libraries. With some KiB less than they need glibc's loader ends by a signal.
        for name in ("haklua5.1", "haklua5.4"):
            if name in BUILT:
                results = [
                    self.refused_or_whole(self.run_program(BUILT[name], script, space=n * MIB), "2000000\n", words)
                    for n in (3, 12, 24, 48, 64, 80, 96, 128, 256, 1024)
                ]
                self.assertIn(True, results)
                self.assertIn(False, results)

    @needs("python")
    def test_python(self):
        script = self.file("program.py", PYTHON)
        interpreter = os.path.realpath(sys.executable)
        results = []
        for n in (24, 48, 96, 128, 192, 256, 384, 512, 2048):
            command = (interpreter, "-m", "hakmem", "run", "--all", "--report", "", script)
            done = self.run_program(*command, space=n * MIB, PYTHONPATH=BUILT["python"])
            words = "(?i)memory|cannot allocate|start new thread|shared object|cannot map"
            results.append(self.refused_or_whole(done, "500 30000000\n", words))
        self.assertIn(True, results)
        self.assertIn(False, results)


class Writable(Case):
    """RLIMIT_DATA counts what may be written to, as vm.overcommit_memory=2 does: what is reserved and not used leaves
    room for all else, such as stacks."""

    DATA = 160 * MIB

    def test_lua(self):
        code = """
            local t = {}
            local ok, message = pcall(function() for i = 1, 1e9 do t[i] = i .. string.rep("z", 30000) end end)
            local count = #t
            t = nil
            print(ok, message, count > 3000)
        """
        for name in ("hakluajit", "haklua5.1", "haklua5.4"):
            if name in BUILT:
                done = self.run_program(BUILT[name], self.file("script.lua", code), data=self.DATA)
                self.assertEqual((done.returncode, done.stdout), (0, "false\tnot enough memory\ttrue\n"), done.stderr)

    @needs("shim")
    def test_shim(self):
        script = self.file("program.py", PYTHON)
        variables = {"LD_PRELOAD": BUILT["shim"], "PYTHONMALLOC": "malloc"}
        done = self.run_program("/usr/bin/python3", script, data=self.DATA, **variables)
        self.assertEqual((done.returncode, done.stdout), (0, "500 30000000\n"), done.stderr)

    @needs("python")
    def test_python(self):
        command = (os.path.realpath(sys.executable), "-m", "hakmem", "run", "--all", "--report", "")
        script = self.file("program.py", PYTHON)
        done = self.run_program(*command, script, data=self.DATA, PYTHONPATH=BUILT["python"])
        self.assertEqual((done.returncode, done.stdout), (0, "500 30000000\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
