"""A memory cgroup at its limit: launchers, the shim and Python. The kernel ends a program that passes the
group's limit, as it promises more than there is; a limit of hakmem below that gives an error, and the program
goes on.

test_cgroup.py NAME=PATH...: what was built.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BUILT = dict(word.split("=", 1) for word in sys.argv[1:])
del sys.argv[1:]
MIB = 1 << 20
GROUP = 96 * MIB
NUMBERS = itertools.count()

# Waves that fit; then, if there is a limit to meet, blocks until an error, of which as much as is asked for.
LUA = """
local function eat(mib)
  local kept = {}
  for i = 1, mib * 10 do kept[i] = string.rep("x", 100000) .. i end
  return #kept
end
for wave = 1, 5 do eat(30) collectgarbage() end
local ok, why = pcall(eat, tonumber(arg[1]))
collectgarbage()
print(ok, ok and why or why:match("not enough memory"), eat(20))
"""
PYTHON = """
import sys
def eat(mib):
    return len([bytes(100000) + b"x" for i in range(mib * 10)])
for wave in range(5): eat(30)
try:
    print(True, eat(int(sys.argv[1])), eat(20))
except MemoryError:
    print(False, "MemoryError", eat(20))
"""


def own_folders():
    """Of this process: where the controller of memory is, and whether that is version 2."""
    mounts, own = [], {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            own[controllers] = path
    with open("/proc/self/mounts") as file:
        for line in file:
            _, place, kind, options, *_ = line.split()
            if kind == "cgroup2":
                path = own.get("", "/")
                mounts += [(f"{place}{p}".rstrip("/"), True) for p in (path, os.path.dirname(path), "/")]
            elif kind == "cgroup" and "memory" in options.split(","):
                mounts.append((place, False))
    return mounts


class Group:
    """A group of its own for the programs of a test; none of it is left."""

    def __init__(self):
        refused = "no controller of memory"
        for folder, self.unified in own_folders():
            self.path = f"{folder}/hakmem-test-{os.getpid()}-{next(NUMBERS)}"
            try:
                os.mkdir(self.path)
            except OSError as error:
                refused = str(error)
                continue
            if os.path.exists(os.path.join(self.path, self.name("max"))):
                return
            os.rmdir(self.path)
            refused = f"{folder} has no controller of memory for its groups"
        raise unittest.SkipTest(f"no group can be made: {refused}")

    def name(self, what):
        return {"max": "memory.max" if self.unified else "memory.limit_in_bytes", "high": "memory.high"}[what]

    def set(self, what, n):
        self.write(self.name(what), n)
        if what == "max":
            # What is swapped out is not held; without swap these files may be missing.
            with contextlib.suppress(OSError):
                self.write(
                    "memory.swap.max" if self.unified else "memory.memsw.limit_in_bytes",
                    0 if self.unified else n,
                )

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def event(self, name):
        with open(os.path.join(self.path, "memory.events" if self.unified else "memory.oom_control")) as file:
            return int(dict(line.split() for line in file)[name])

    def killed(self):
        return self.event("oom_kill")

    def peak(self):
        """Bytes; None if the kernel does not tell them (before 5.19)."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.path, "memory.peak")) as file:
            return int(file.read())

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def end(self):
        os.rmdir(self.path)


class Cgroup(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.group = self.new_group()

    def new_group(self):
        group = Group()
        self.addCleanup(group.end)
        group.set("max", GROUP)
        return group

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def commands(self, limit):
        """Name, command and environment of each program, with this limit of hakmem or none."""
        lua, python = self.file("a.lua", LUA), self.file("a.py", PYTHON)
        for name in ("haklua5.1", "haklua5.4", "hakluajit"):
            if name in BUILT:
                yield name, [BUILT[name], *([f"--hak-limit={limit}"] if limit else []), lua], {}
        if "shim" in BUILT:
            settings = f"limit={limit}" if limit else ""
            yield (
                "shim",
                ["/usr/bin/python3", python],
                {"LD_PRELOAD": BUILT["shim"], "HAKMEM": settings, "PYTHONMALLOC": "malloc"},
            )
        if "python" in BUILT:
            options = ["--all", *([f"--limit={limit}"] if limit else []), "--report", "r.json"]
            command = [os.path.realpath(sys.executable), "-m", "hakmem", "run", *options, python]
            yield "python", command, {"PYTHONPATH": BUILT["python"]}

    def run_in(self, group, command, mib, variables):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "HAKMEM", "LUA_"))}
        return subprocess.run(
            [*command, str(mib)],
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=200,
            env=plain | variables,
            preexec_fn=group and group.enter,
        )

    def test_what_fits_runs(self):
        for name, command, variables in self.commands(None):
            with self.subTest(name):
                done = self.run_in(self.group, command, 50, variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?i)^true\s500\s200\n$")
        self.assertEqual(self.group.killed(), 0)

    def test_the_kernel_ends_what_does_not_fit(self):
        for count, (name, command, variables) in enumerate(self.commands(None), 1):
            with self.subTest(name):
                # Pages of files count in the group that first read them. A full one would rather evict its programs'
                # own code over and over than end them.
                self.run_in(None, command, 100, variables)
                done = self.run_in(self.group, command, 300, variables)
                self.assertEqual((done.returncode, done.stdout), (-signal.SIGKILL, ""), done.stderr)
                self.assertEqual(self.group.killed(), count)

    def test_a_limit_below_the_groups_is_an_error_that_the_program_survives(self):
        for name, command, variables in self.commands("64M"):
            with self.subTest(name):
                done = self.run_in(self.group, command, 300, variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?i)^false\s(not enough memory|MemoryError)\s200\n$")
        self.assertEqual(self.group.killed(), 0)

    def test_programs_above_memory_high_are_slowed_down_only(self):
        if not self.group.unified:
            self.skipTest("memory.high is of cgroups version 2")
        for name, command, variables in self.commands(None):
            with self.subTest(name):
                free = self.new_group()
                self.run_in(free, command, 45, variables)
                if free.peak() is None:
                    self.skipTest("this kernel tells no peak of a group")
                # A second for each 64 pages where a tenth is too much: so only little is.
                group = self.new_group()
                group.set("high", free.peak() - MIB)
                done = self.run_in(group, command, 45, variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?i)^true\s450\s200\n$")
                self.assertGreater(group.event("high"), 0)


if __name__ == "__main__":
    unittest.main()
