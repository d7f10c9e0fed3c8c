"""Every n-th request for pages is refused, in whole programs: launchers, modules in interpreters that others
built, the shim, Python. A program ends with all of its output, or says that memory is short: no signal, no
hang, nothing else.

test_pages.py NAME=PATH...: what was built; `nth` is the library of support/nth.c.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILT = dict(word.split("=", 1) for word in sys.argv[1:])
del sys.argv[1:]
MOST = 250  # requests of a program, with room

LUA = """
if HAKMEM then require("hakmem") end
local kept = {}
local ok, why = pcall(function()
    for i = 1, 3000 do kept[i % 500] = string.rep("x", i % 3000) .. i end
    local big = string.rep("y", 3000000)
    local co = coroutine.wrap(function() for i = 1, 10 do coroutine.yield({ i }) end end)
    for i = 1, 10 do kept[i] = co() end
    local grown = {}
    for i = 1, 100000 do grown[i] = i end
    return #big + #grown
end)
if not ok then assert(string.find(why, "not enough memory", 1, true), why) end
kept = nil
collectgarbage()
print(ok and why or "short")
"""
PYTHON = """
import sys, threading
kept, short = {}, []
def work():
    try:
        for i in range(5000): kept[i % 500] = bytes(i % 3000)
        big = bytearray()
        for i in range(60): big += bytes(50000)
    except MemoryError:
        short.append(1)
def later():
    meeting.wait()
    work()
count = int(sys.argv[1])
# A thread of CPython without memory for its first steps ends unseen by start(), which waits for ever.
meeting = threading.Barrier(count + 1)
threads = [threading.Thread(target=later) for _ in range(count)]
for t in threads: t.start()
try:
    open("/nth-begins")
except OSError:
    pass
meeting.wait()
work()
for t in threads: t.join()
print("short" if short else "whole")
"""
WORDS = r"(?i)memory|MemoryError|failed to initialize importlib|cannot write"
# It ends the process when it cannot protect machine code, also in a state of the binding's own.
WORDS_OF_LUAJIT = WORDS + "|restricted kernel"


class Pages(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_nth(self, command, nth, variables):
        """What came out, and how many requests were refused."""
        log = os.path.join(self.dir, "nth.log")
        if os.path.exists(log):
            os.unlink(log)
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "HAKMEM", "LUA_"))}
        preload = ":".join(p for p in (BUILT["nth"], variables.get("LD_PRELOAD")) if p)
        done = subprocess.run(
            command,
            cwd=self.dir,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            env=plain | variables | {"LD_PRELOAD": preload, "NTH": nth, "NTH_LOG": log},
        )
        with open(log) as file:
            return done, len(file.read()) - 1

    def each(self, command, whole, words=WORDS, step=1, **variables):
        """The n-th alone, all from the n-th on, and one of three: until no request is left to refuse."""
        outputs = set()
        if os.environ.get("HAKMEM_EVERY_PAGE"):
            step = 1
        for form in ("{}", "{}+", "{}/3"):
            for n in range(1, MOST, step):
                nth = form.format(n)
                with self.subTest(nth):
                    done, refused = self.run_nth(command, nth, variables)
                    said = f"{done.returncode} {done.stdout}{done.stderr}"
                    if refused == 0:
                        self.assertEqual((done.returncode, done.stdout), (0, whole), said)
                        break
                    self.assertGreaterEqual(done.returncode, 0, f"a signal: {said}")
                    if done.returncode == 0:
                        self.assertIn(done.stdout, (whole, "short\n"), said)
                    else:
                        self.assertRegex(done.stderr, words)
                    outputs.add((done.returncode == 0, done.stdout))
            else:
                self.fail(f"{form}: more than {MOST} requests")
        if step == 1:
            self.assertIn((True, whole), outputs, "what is refused once is had the next time, or not needed")
        self.assertTrue(outputs - {(True, whole)}, "nothing that was refused was missed")

    def lua(self, name, *options, **more):
        if name not in BUILT:
            self.skipTest(f"{name} was not built")
        words = WORDS_OF_LUAJIT if name == "hakluajit" else WORDS
        command = [BUILT[name], *options, self.file("script.lua", LUA)]
        self.each(command, "3100000\n", words, **more)

    def all_of_lua(self, name, **more):
        options = ("--hak-report=r.txt", "--hak-profile=p.json,4K", "--hak-live=on", "--hak-limit=200M")
        self.lua(name, *options, "--hak-learn=learned", **more)

    def test_lua_5_1(self):
        self.lua("haklua5.1", "--hak-labels=off")
        self.all_of_lua("haklua5.1")

    def test_lua_5_4(self):
        self.lua("haklua5.4", "--hak-labels=off")
        self.all_of_lua("haklua5.4")

    def test_luajit(self):
        self.all_of_lua("hakluajit", step=5)

    def test_policy(self):
        self.file("policy", "hakmem-policy 1\n")
        self.lua("haklua5.4", "--hak-policy=policy", "--hak-mode=fast")

    def test_adopted(self):
        script = self.file("script.lua", "HAKMEM = true\n" + LUA)
        for name in ("lua5.1", "lua5.4", "luajit"):
            module, interpreter = BUILT.get("module-" + name), shutil.which(name)
            if module and interpreter:
                with self.subTest(name):
                    words, step = (WORDS_OF_LUAJIT, 8) if name == "luajit" else (WORDS, 1)
                    path = os.path.join(os.path.dirname(module), "?.so")
                    self.each([interpreter, script], "3100000\n", words, step, LUA_CPATH=path)

    def test_shim(self):
        if "shim" not in BUILT:
            self.skipTest("the shim was not built")
        script = self.file("program.py", PYTHON)
        everything = "report=r.txt,profile=p.json,rate=4K,check=report,live=on,learn=l.txt,limit=512M"
        hardened = "guard=50,trace=1000,canary=on,quarantine=on"
        for settings in ("", everything, hardened):
            threads, begin = (2, "nth-begins") if settings else (0, "")
            with self.subTest(settings):
                command = ["/usr/bin/python3", "-S", script, str(threads)]
                variables = {"LD_PRELOAD": BUILT["shim"], "HAKMEM": settings, "PYTHONMALLOC": "malloc"}
                self.each(command, "whole\n", step=2 if begin else 5, NTH_BEGIN=begin, **variables)

    def test_python(self):
        if "python" not in BUILT:
            self.skipTest("the Python binding was not built")
        script = self.file("program.py", PYTHON)
        interpreter = os.path.realpath(sys.executable)
        everything = "--labels=site --profile=64K --live --learn=learned --report=r.json --limit=512M"
        for more in ("", everything):
            threads, begin = (2, "nth-begins") if more else (0, "")
            options = ("--all", *more.split())
            with self.subTest(options):
                shell = subprocess.run(
                    [interpreter, "-m", "hakmem", "env", *options],
                    env=os.environ | {"PYTHONPATH": BUILT["python"]},
                    cwd=self.dir,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                words = (w.split("=", 1) for w in shlex.split(shell, comments=True) if "=" in w)
                variables = {name: value.rstrip(";") for name, value in words}
                variables["PYTHONPATH"] = BUILT["python"]
                command = [interpreter, "-S", script, str(threads)]
                self.each(command, "whole\n", step=2 if begin else 5, NTH_BEGIN=begin, **variables)


if __name__ == "__main__":
    unittest.main()
