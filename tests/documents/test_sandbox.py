#!/usr/bin/env python3
"""test_sandbox.py PAGE SOURCE PROGRAM [SHIM]: the system calls that a page lists are those that a sandboxed thread needs.

```sandbox alone    has the calls
```sandbox report   has those that the report at the end needs beside them
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

PAGE, SOURCE, PROGRAM = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
SHIM = sys.argv[4] if len(sys.argv) > 4 else None
LISTS = dict(re.findall(r"^```sandbox (\w+)\n(.*?)^```", PAGE.read_text(), re.M | re.S))
CALLS = LISTS["alone"].split()
KILLED = -31  # SIGSYS
# What libc's functions of the same names come to.
CALLED = re.compile(r"\bSYS_(\w+)|\b(mmap|munmap|mremap|mprotect|madvise|getpid|sched_yield|clock_gettime)\(")


class Sandbox(unittest.TestCase):
    def run_with(self, calls, settings=None):
        env = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "HAKMEM")}
        if SHIM:
            env.update(LD_PRELOAD=SHIM, HAKMEM=settings or "")
        done = subprocess.run([PROGRAM, *calls], env=env, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        return done

    def test_threads_with_the_calls_of_the_page(self):
        for _ in range(5):
            done = self.run_with(CALLS)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_a_report_with_the_calls_of_the_page(self):
        if not SHIM:
            self.skipTest("the shim writes it")
        done = self.run_with(CALLS + LISTS["report"].split(), "report=stderr")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.assertIn("  process resident", done.stderr)
        self.assertEqual(self.run_with(CALLS, "report=stderr").returncode, KILLED)

    def test_a_call_that_is_missing_ends_the_program(self):
        for call in ("gettid", "mremap"):
            done = self.run_with([name for name in CALLS if name != call])
            self.assertEqual(done.returncode, KILLED, call)

    def test_the_core_makes_these_calls_and_no_other(self):
        found = set()
        for path in (SOURCE / "core/src").rglob("*.[ch]"):
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
            found.update(a or b for a, b in CALLED.findall(text))
        self.assertEqual(found, set(CALLS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
