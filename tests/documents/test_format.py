"""C and C++ are as .clang-format has them: test_format.py SOURCE CLANG_FORMAT

CLANG_FORMAT is of the version that the form is pinned to: others break lines elsewhere.
"""

import os
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE, FORMAT = Path(sys.argv[1]), sys.argv[2]
FOLDERS = ("bench", "bindings", "core", "examples", "tests")
ENDS = (".c", ".h", ".cpp", ".hpp")
EACH = 40  # files a process


def wrong(files):
    """The files that would change, and the first line of each."""
    done = subprocess.run([FORMAT, "--dry-run", *files], cwd=SOURCE, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = {}
    for line in done.stderr.splitlines():
        if "code should be clang-formatted" in line:
            file, number = line.split(":")[:2]
            found.setdefault(file, number)
    return [f"{file}:{number}" for file, number in found.items()]


class Format(unittest.TestCase):
    def test_all_files(self):
        files = [str(p.relative_to(SOURCE)) for f in FOLDERS for p in sorted((SOURCE / f).rglob("*")) if p.suffix in ENDS]
        self.assertGreater(len(files), 800)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = pool.map(wrong, [files[i : i + EACH] for i in range(0, len(files), EACH)])
        self.assertEqual([w for part in parts for w in part], [], f"mend them by {FORMAT} -i FILE in {SOURCE}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
