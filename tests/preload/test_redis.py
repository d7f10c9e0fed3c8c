"""redis's own tests, of Debian's server under the shim: test_redis.py SHIM FOLDER_OF_THE_SOURCES

The test program, the server, its children and clients all have the shim. With HAKMEM_SUITES=all in the
environment every unit runs, without the tests that redis itself calls slow, and without defragmentation:
it goes by jemalloc's statistics, which stand still under the shim. Else some units that allocate much.
"""

import os
import random
import re
import shutil
import subprocess

from shim import HELPERS, Case, main, reports

UNITS = [
    *(f"unit/type/{name}" for name in ("hash", "string", "set", "zset", "list-2")),
    *(f"unit/{name}" for name in ("other", "scripting", "functions", "lazyfree", "multi", "querybuf")),
]
PROGRAMS = (
    "redis-server",
    "redis-check-rdb",
    "redis-check-aof",
    "redis-sentinel",
    "redis-cli",
    "redis-benchmark",
)
# A value of 33000 bytes is to have less than 42000, as in jemalloc; it has three units of 16 KiB.
INHERENT = {"trim on SET with big value in tests/unit/type/string.tcl"}
# The exceptions of a unit end it; a test that fails does not.
FAILED = re.compile(r"\[(?:err|exception|timeout)\][^:]*: (.*)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Redis(Case):
    def failures(self, units, settings):
        """What failed, by name, and the output."""
        work = self.path("work")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(os.path.join(HELPERS, "tests"), os.path.join(work, "tests"))
        os.mkdir(os.path.join(work, "src"))
        for name in PROGRAMS:
            # Debian's server and its checkers are one program by several names.
            found = shutil.which(name) or shutil.which("redis-check-rdb")
            os.symlink(found, os.path.join(work, "src", name))
        command = [
            "tclsh",
            "tests/test_helper.tcl",
            "--tags",
            "-slow -defrag",
            "--clients",
            "3",
            "--portcount",
            "1000",
        ]
        command += ["--baseport", str(random.randrange(20000, 31000))]
        for unit in units or ():
            command += ["--single", unit]
        done = subprocess.run(
            command,
            cwd=work,
            env=self.environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=560 if units else None,
        )
        output = COLOUR.sub("", done.stdout.decode(errors="replace"))
        names = {name.strip() for name in FAILED.findall(output)}
        if done.returncode != 0 and not names:
            names = {f"status {done.returncode}"}
        return names, output

    def test_suite(self):
        self.need("tclsh", "redis-cli", "redis-benchmark", "redis-check-rdb")
        units = None if os.environ.get("HAKMEM_SUITES") == "all" else UNITS
        under, output = self.failures(units, f"report={self.path('report')}")
        with open(self.path("report")) as file:
            servers = [r for r in reports(file.read()) if r["name"] == "redis-server"]
        self.assertGreater(max((r["peak live"] for r in servers), default=0), 1 << 20, output[-2000:])
        self.assertLessEqual(INHERENT, under)
        self.assertIn("The End", output)
        if under != INHERENT:
            without, _ = self.failures(units, None)
            self.assertEqual(under - without - INHERENT, set(), output[-5000:])


if __name__ == "__main__":
    main()
