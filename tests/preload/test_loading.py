"""Calls before the shim's start and after its end, and modules that come by dlopen."""

import os

from shim import HELPERS, SHIM, Case, main, reports


class Loading(Case):
    def test_module_in_a_program_without_cxx_library(self):
        module = os.path.join(HELPERS, "libpreload_module.so")
        if not os.path.exists(module):
            self.skipTest("no C++ compiler when hakmem was built")
        plain, [report] = self.both([os.path.join(HELPERS, "preload_plain"), module])
        self.assertEqual(plain.stdout, "early\n" + 3 * "module 1\n")
        self.assertGreater(report["live"], 0)

    def test_module_that_binds_to_its_own_libraries_first(self):
        plain, _ = self.both([os.path.join(HELPERS, "preload_helper"), "deep"])
        self.assertEqual((plain.stdout, plain.returncode), ("exchanged\n", 0))

    def test_libraries_around_the_shim(self):
        early = os.path.join(HELPERS, "libpreload_early.so")
        for order in (f"{early}:{SHIM}", f"{SHIM}:{early}"):
            done = self.start(["/bin/ls", "/"], "report=stderr", LD_PRELOAD=order)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stdout, self.start(["/bin/ls", "/"]).stdout)
            self.assertEqual(len(reports(done.stderr)), 1)

    def test_little_address_space(self):
        done = self.start(["/bin/bash", "-c", "ulimit -v 200000; exec /bin/ls /"], "report=stderr")
        self.assertEqual(done.stdout, self.start(["/bin/ls", "/"]).stdout, done.stderr)


if __name__ == "__main__":
    main()
