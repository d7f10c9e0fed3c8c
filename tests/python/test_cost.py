"""What labels cost, in instructions for an allocation: counted, not timed."""

import re
import shutil
import subprocess
import sys
import unittest

from support import ProgramCase, needs_objects, preloaded

OBJECTS = 4000
BLOCKS = 2 * OBJECTS  # the object and the number of the loop
ROUNDS = 10
LINE = re.compile(r"\s*([\d,]+) .*\[[^]]*/libhakmem_pyhook\.so\]$")


@unittest.skipUnless(shutil.which("callgrind_annotate"), "valgrind is not installed")
@needs_objects
class Cost(ProgramCase):
    def instructions(self, labels, rounds):
        """Those in the hook alone: what the interpreter's dictionaries take differs from run to run."""
        code = f"def f():\n for i in range({rounds}): [object() for i in range({OBJECTS})]\nf()"
        out = f"{self.folder}/out"
        env = preloaded(all_domains=True, labels=labels)
        env["PYTHONHASHSEED"] = "0"
        self.stdout_of(
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
            *(sys.executable, "-S", "-E", "-c", code),
            env=env,
        )
        lines = self.stdout_of("callgrind_annotate", "--threshold=100", out).splitlines()
        return sum(int(m[1].replace(",", "")) for m in map(LINE.match, lines) if m)

    def stdout_of(self, *command, env=None):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def for_a_block(self, labels):
        """Making one and freeing it."""
        return (self.instructions(labels, ROUNDS + 1) - self.instructions(labels, 1)) / (ROUNDS * BLOCKS)

    def test_instructions_for_an_allocation(self):
        off, native, site = (self.for_a_block(labels) for labels in ("off", "native", "site"))
        print(f"instructions for a block: off {off:.1f}, native {native:.1f}, site {site:.1f}")
        self.assertGreater(off, 50, "the hook's instructions are found")
        self.assertLess(off, 75)
        self.assertGreater(native - off, 5, "native labels are on")
        self.assertLess(native - off, 19)
        self.assertGreater(site - native, 15, "sites are on")
        self.assertLess(site - native, 25)


if __name__ == "__main__":
    unittest.main()
