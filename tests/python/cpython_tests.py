"""CPython's own tests with hakmem in all domains, installed early: what fails beyond what fails without it
must be exactly what asserts that pymalloc is active. `--all`: the whole list (half an hour)."""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

from support import plain_environment, preloaded

SHORT = ["test_gc", "test_fork1", "test_tracemalloc", "test_dict", "test_sys"]
WHOLE = [
    *SHORT,
    "test_list", "test_bytes", "test_weakref", "test_json", "test_capi", "test_threading",
    "test_subprocess", "test_embed", "test_import", "test_cmd_line", "test_ctypes", "test_io",
    "test_unicode", "test_memoryview", "test_pickle", "test_re", "test_generators", "test_set",
    "test_array", "test_mmap", "test_zlib", "test_sqlite3", "test_decimal", "test_xml_etree",
    "test_atexit", "test_audit", "test_multiprocessing_fork", "test_asyncio",
]
# They assert that the allocator is pymalloc, or that it has blocks.
EXPECTED = ("test_debugmallocstats", "test_getallocatedblocks", "test_pythonmalloc")


def failures(tests, environment):
    """Names of the test cases that failed, and whether the run ended."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.xml")
        command = [sys.executable, "-m", "test", "--junit-xml", result, "--timeout", "300", *tests]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if not os.path.exists(result):
            sys.exit(f"no result, status {done.returncode}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}")
        found = set()
        for case in tree.parse(result).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                found.add(case.get("name"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole list")
    parser.add_argument("tests", nargs="*", help="instead of the list")
    args = parser.parse_args()
    probe = subprocess.run(
        [sys.executable, "-c", "import test.test_gc, test.libregrtest"], capture_output=True
    )
    if probe.returncode != 0:
        print("this Python comes without its tests")
        sys.exit(77)
    tests = args.tests or (WHOLE if args.all else SHORT)
    with_hakmem = failures(tests, preloaded(all_domains=True))
    suspicious = {name for name in with_hakmem if not name.endswith(EXPECTED)}
    without = failures(tests, plain_environment()) if suspicious else set()
    expected = with_hakmem - suspicious
    print(
        f"{len(tests)} files; expected failures: {sorted(expected)}; "
        f"also without hakmem: {sorted(suspicious & without)}"
    )
    if "test_sys" in tests and not expected:
        sys.exit("the tests that assert that pymalloc is active passed: was hakmem there?")
    if suspicious - without:
        sys.exit(f"failed only with hakmem: {sorted(suspicious - without)}")


if __name__ == "__main__":
    main()
