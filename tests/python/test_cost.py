"""What labels cost, in instructions for an allocation: counted, not timed."""

import re
import shutil
import subprocess
import sys
import unittest

from support import ProgramCase, needs_objects, preloaded

OBJECTS = 4000
BLOCKS = 2 * OBJECTS  # the object and the number of the loop
ROUNDS = 40  # the start of the interpreter differs by half a million from run to run


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@needs_objects
class Cost(ProgramCase):
    def instructions(self, labels, rounds):
        code = f"def f():\n for i in range({rounds}): [object() for i in range({OBJECTS})]\nf()"
        command = [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/out"),
            *(sys.executable, "-S", "-E", "-c", code),
        ]
        env = preloaded(all_domains=True, labels=labels)
        env["PYTHONHASHSEED"] = "0"
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])

    def for_a_block(self, labels):
        """Making one and freeing it, with the work of the interpreter."""
        return (self.instructions(labels, ROUNDS + 1) - self.instructions(labels, 1)) / (ROUNDS * BLOCKS)

    def test_instructions_for_an_allocation(self):
        off, native, site = (self.for_a_block(labels) for labels in ("off", "native", "site"))
        print(f"instructions for a block: off {off:.1f}, native {native:.1f}, site {site:.1f}")
        self.assertGreater(native - off, 5, "native labels are on")
        self.assertLess(native - off, 50)
        self.assertGreater(site - native, 15, "sites are on")
        self.assertLess(site - native, 75)


if __name__ == "__main__":
    unittest.main()
