"""SQLite's own tests under the shim: test_sqlite.py SHIM FOLDER_OF_THE_TESTS

The variable TESTFIXTURE names its program. What fails under the shim must fail without it, too. With
HAKMEM_SUITES=all in the environment the set that SQLite calls veryquick and all tests of failing
allocations run; else some of these, and of sorting, joins and JSON.
"""

import glob
import os
import re
import subprocess

from shim import HELPERS, Case, main, reports

ALL = os.environ.get("HAKMEM_SUITES") == "all"
NAMES = [
    *(f"malloc{which}" for which in "4579ABCELM"),
    *("memsubsys1", "memsubsys2", "softheap1", "cache", "shared", "sort", "vacuum", "select1", "join"),
    *("window1", "json101"),
]


class Sqlite(Case):
    def failures(self, name, settings):
        """What failed, by name, and the output."""
        work = self.path(f"{name}-{'plain' if settings is None else 'shim'}")
        os.mkdir(work)
        done = subprocess.run(
            [os.environ["TESTFIXTURE"], os.path.join(HELPERS, f"{name}.test")],
            cwd=work,
            env=self.environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=None if ALL else 300,
        )
        output = done.stdout.decode(errors="replace")
        ended = re.search(r"(?m)^(\d+) errors out of \d+ tests", output)
        names = set(" ".join(re.findall(r"(?m)^!Failures on these tests: (.*)", output)).split())
        if not ended or (ended[1] != "0" and not names):
            names.add(f"status {done.returncode}")
        return names, output

    def test_suite(self):
        names = NAMES
        if ALL:
            faults = sorted(glob.glob(os.path.join(HELPERS, "malloc*.test")))
            names = [os.path.basename(path)[: -len(".test")] for path in faults] + ["veryquick"]
        for name in names:
            with self.subTest(name):
                under, output = self.failures(name, f"report={self.path('report')}")
                if under:
                    without, _ = self.failures(name, None)
                    self.assertEqual(under - without, set(), output[-2000:])
        with open(self.path("report")) as file:
            self.assertGreaterEqual(len(reports(file.read())), len(names))


if __name__ == "__main__":
    main()
