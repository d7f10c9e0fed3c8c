"""What labels cost for an allocation, and `run` and reports at the start, in instructions: counted, not timed."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from support import OBJ, ProgramCase, empty_package, needs_objects, plain_environment, preloaded

OBJECTS = 4000
BLOCKS = 2 * OBJECTS  # the object, and one that is freed at once: the number of the loop
# From 3.14 on small numbers come from a list of free ones.
FREED = "" if sys.version_info < (3, 14) else " if -large"
ROUNDS = 10


def of_the_hook(profile):
    """The instructions of the hook's own code, of all that callgrind wrote: callgrind_annotate takes longer than the
    program."""
    objects, total, is_hook, is_call = {}, 0, False, False
    with open(profile, errors="replace") as lines:
        for line in lines:
            if line.startswith(("ob=", "cob=")):
                # "ob=(NUMBER) NAME" the first time, "ob=(NUMBER)" later; "cob" is that of a called function.
                word, _, rest = line.partition("=")
                number, _, name = rest.strip().partition(" ")
                if name:
                    objects[number] = name
                if word == "ob":
                    is_hook = objects[number].endswith("/libhakmem_pyhook.so")
            elif line.startswith("calls="):
                is_call = True  # the next line has the instructions of the called function
            elif line[0] in "+-*0123456789":
                if is_hook and not is_call:
                    total += int(line.split()[1])
                is_call = False
    return total


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@needs_objects
class Cost(ProgramCase):
    def instructions(self, labels, rounds, padding):
        """Those in the hook alone: what the interpreter's dictionaries take differs from run to run."""
        code = f"def f():\n large = 1 << 70\n for i in range({rounds}): [object() for i in range({OBJECTS}){FREED}]\nf()"
        out = f"{self.folder}/out"
        env = preloaded(all_domains=True, labels=labels)
        env["PYTHONHASHSEED"] = "0"
        env["PADDING"] = "x" * padding
        self.stdout_of(
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
            *(sys.executable, "-S", "-E", "-c", code),
            env=env,
        )
        return of_the_hook(out)

    def stdout_of(self, *command, env=None):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def for_a_block(self, labels, most=0):
        """Making one and freeing it. Which places share a slot of a cache is a matter of addresses, which are others
        in a larger environment: three are tried where it takes more than `most`."""
        found = []
        for padding in (0, 1000, 2000):
            many, few = (self.instructions(labels, rounds, padding) for rounds in (ROUNDS + 1, 1))
            found.append((many - few) / (ROUNDS * BLOCKS))
            if not most or found[-1] < most:
                break
        return min(found)

    def in_the_hook(self, code, env):
        out = f"{self.folder}/out"
        self.stdout_of(
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-S", "-E", "-c", code),
            env=env | {"PYTHONHASHSEED": "0"},
        )
        return of_the_hook(out)

    def test_instructions_for_a_free_of_what_is_not_hakmems(self):
        """Each free of the process comes by the hook: code in C and Rust has many. labs is called in the same way."""
        code = (
            "import ctypes\nof = ctypes.CDLL(None)\nof.malloc.restype = of.labs.restype = ctypes.c_void_p\n"
            "of.free.argtypes = of.labs.argtypes = [ctypes.c_void_p]\nm, f = of.malloc, of.{}\n"
            "for i in range(4000): f(m(40))"
        )
        env = preloaded(all_domains=True)
        taken = (self.in_the_hook(code.format("free"), env) - self.in_the_hook(code.format("labs"), env)) / 4000
        print(f"instructions for a free of libc's: {taken:.1f}")
        self.assertGreater(taken, 10, "it comes by the hook")
        self.assertLess(taken, 100)

    @unittest.skipIf(sys.version_info < (3, 13), "CPython before 3.13 does not tell what it takes from free lists")
    def test_instructions_for_an_object_that_begins(self):
        """What is told of each object that begins and ends. Of the four in each round a tuple and a float are of kinds that
        have a free list."""
        code = "for i in range(40000): object(), i * 0.5"
        objects = 4 * 40000
        on, off = (self.in_the_hook(code, preloaded(all_domains=True, labels="site", reused=word)) for word in ("on", "off"))
        print(f"instructions for an object: {(on - off) / objects:.1f}")
        self.assertGreater(on - off, objects * 5)
        self.assertLess(on - off, objects * 60)

    def test_instructions_for_an_allocation(self):
        off = self.for_a_block("off", 75)
        native = self.for_a_block("native", off + 19)
        site = self.for_a_block("site", native + 25)
        print(f"instructions for a block: off {off:.1f}, native {native:.1f}, site {site:.1f}")
        self.assertGreater(off, 50, "the hook's instructions are found")
        self.assertLess(off, 75)
        self.assertGreater(native - off, 5, "native labels are on")
        self.assertLess(native - off, 19)
        self.assertGreater(site - native, 15, "sites are on")
        self.assertLess(site - native, 25)


class Start(ProgramCase):
    def instructions(self, *command, env=None):
        out = f"{self.folder}/out"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-S", *command],
            env=(env or plain_environment()) | {"PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=200,
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_instructions(self):
        """A processor does 1000 million and more in a second."""
        empty_package(self.folder)
        drive = self.script(
            """
            import os, runpy, sys
            os.execve = lambda *_: sys.exit()       # of which valgrind would not tell
            sys.argv = sys.argv[1:]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
            """
        )
        path = os.environ.get("PYTHONPATH", "")
        env = plain_environment(
            PYTHONPATH=f"{self.folder}:{path}:{':'.join(p for p in sys.path if p)}",
            PYTHONPYCACHEPREFIX=str(self.folder / "compiled"),
        )
        run, empty = (drive, "hakmem", "run", "--all", "-c", "pass"), (drive, "empty")
        for program in run, empty:
            self.python("-S", *program, env=env)  # which compiles, as an installer does
        started = self.instructions(*run, env=env) - self.instructions(*empty, env=env)
        print(f"million instructions: start {started / 1e6:.1f}")
        self.assertGreater(started, 100_000)
        self.assertLess(started, 6_000_000)
        for labels in ("off", "site") if OBJ == "replaced" else ("off",):
            options = {"all_domains": True, "labels": labels}
            reported = self.instructions("-c", "pass", env=preloaded(**options, report="-"))
            reported -= self.instructions("-c", "pass", env=preloaded(**options))
            print(f"million instructions: report with labels {labels} {reported / 1e6:.1f}")
            self.assertGreater(reported, 100_000, "there was one")
            # By site it asks of each block what free memory it pins.
            self.assertLess(reported, 12_000_000 if labels == "site" else 6_000_000)


if __name__ == "__main__":
    unittest.main()
