"""PUC's own tests of Lua, from the package lupa: test_puc.py PROGRAM FOLDER [MODULE_FOLDER]

Each file runs under the launcher, with labels and, with the folder of the module, in the stock interpreter that
adopted its state. A file that fails there must fail in the stock interpreter alone, too: the tests are of a later 5.4
than some interpreters, and crash those.
"""

import os
import shutil
import subprocess
import sys
import unittest

from outside import FolderCase, environment

PROGRAM = os.path.abspath(sys.argv.pop(1))
TESTS = sys.argv.pop(1)
MODULE = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else None
STOCK = shutil.which(os.path.basename(PROGRAM)[len("hak") :])
# all.lua calls the others; heavy.lua takes all memory that there is.
LEFT_OUT = {"all.lua", "heavy.lua"}
USER = "_U, _soft, _port, _nomsg, Message = true, true, true, true, print"
# So many pass in Debian's 5.3.6 and 5.4.4, and in 5.5.1.
AT_LEAST = {"haklua5.3": 25, "haklua5.4": 22, "haklua5.5": 30}[os.path.basename(PROGRAM)]


class Puc(FolderCase):
    def run_files(self, *command, **variables):
        """Names of the files that pass; those that fail here alone fail the test."""
        folder = os.path.join(self.dir, "testes")
        passed = []
        for name in sorted(n for n in os.listdir(TESTS) if n.endswith(".lua") and n not in LEFT_OUT):
            done = self.one(folder, name, command, variables)
            if done.returncode == 0:
                passed.append(name)
            elif self.one(folder, name, [STOCK], {}).returncode == 0:
                self.fail(f"{name} fails here alone: {done.returncode}\n{done.stderr[-2000:]}")
        self.assertGreaterEqual(len(passed), AT_LEAST)
        return passed

    def one(self, folder, name, command, variables):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TESTS, folder)
        return subprocess.run(
            [*command, "-e", USER, name],
            cwd=folder,
            env=environment(**variables),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=200,
        )

    def test_under_the_launcher(self):
        self.run_files(PROGRAM, "--hak-labels=off")

    def test_with_labels(self):
        self.run_files(PROGRAM, "--hak-labels=on")

    def test_with_a_profile(self):
        self.run_files(PROGRAM, f"--hak-profile={self.dir}/profile.json,4K")

    @unittest.skipUnless(MODULE, "the module was not built")
    def test_adopted(self):
        version = os.path.basename(PROGRAM)[len("haklua") :].replace(".", "_")
        self.run_files(STOCK, "-l", "hakmem", **{f"LUA_CPATH_{version}": f"{MODULE}/?.so;;"})


if __name__ == "__main__":
    if not STOCK:
        print(f"no stock interpreter for {PROGRAM} (scripts/setup installs it)")
        sys.exit(77)
    unittest.main()
