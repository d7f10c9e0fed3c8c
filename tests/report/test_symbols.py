#!/usr/bin/env python3
"""test_symbols.py NM STATIC [SHARED]: what the library of reports defines has the prefixes of the public interface and
of what all bindings share, so that it stands beside anything; the shared one exports the public interface alone."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

NM, STATIC, *SHARED = sys.argv[1:]
# Tools for USDT probes find by this symbol how far a file was moved. It is weak and hidden.
OF_PROBES = "_.stapsdt.base"
SOURCE = Path(__file__).resolve().parents[2]


def names(file, *options):
    done = subprocess.run([NM, "--defined-only", "--format=posix", *options, file], stdout=subprocess.PIPE, check=True, text=True)
    found = [line.split()[:2] for line in done.stdout.splitlines() if line and not line.endswith(":")]
    return {name for name, kind in found if kind.isupper()}


def public():
    """The functions that the headers declare for the library."""
    headers = "".join(path.read_text() for path in sorted((SOURCE / "bindings/host/include/hakmem").glob("*.h")))
    return set(re.findall(r"HAK_API [^;(]*?\b(hak_\w+)\(", headers))


class Symbols(unittest.TestCase):
    def test_prefixes_of_the_static_library(self):
        found = names(STATIC)
        self.assertGreater(len(public()), 12)
        self.assertLessEqual(public(), found)
        self.assertEqual({name for name in found - public() if not name.startswith("hkc_")} - {OF_PROBES}, set())

    def test_the_shared_library_exports_the_headers(self):
        if not SHARED:
            self.skipTest("sanitizers export names of their own")
        found = {name.partition("@")[0] for name in names(SHARED[0], "--dynamic")}
        self.assertEqual({name for name in found if not name.startswith("HAKMEM_REPORT_")}, public())
        needed = subprocess.run(["readelf", "--dynamic", SHARED[0]], stdout=subprocess.PIPE, check=True, text=True).stdout
        libraries = set(re.findall(r"NEEDED.*\[(lib\w+)", needed))
        self.assertLessEqual(libraries, {"libhakmem", "libc"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
