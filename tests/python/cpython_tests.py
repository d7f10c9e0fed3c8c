"""CPython's own tests with hakmem in all domains, installed early: what fails beyond what fails without it
must be exactly what asserts that pymalloc is active. `--all`, or HAKMEM_SUITES=all in the environment: the
whole list (ten minutes)."""

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hakmem import _launch
from support import FREE_THREADED, plain_environment, preloaded

SHORT = ["test_gc", "test_fork1", "test_tracemalloc", "test_dict", "test_sys"]
WHOLE = [
    *SHORT,
    "test_list",
    "test_bytes",
    "test_weakref",
    "test_json",
    "test_capi",
    "test_threading",
    "test_subprocess",
    "test_embed",
    "test_import",
    "test_cmd_line",
    "test_ctypes",
    "test_io",
    "test_unicode",
    "test_memoryview",
    "test_pickle",
    "test_re",
    "test_generators",
    "test_set",
    "test_array",
    "test_mmap",
    "test_zlib",
    "test_sqlite3",
    "test_decimal",
    "test_xml_etree",
    "test_atexit",
    "test_audit",
    "test_multiprocessing_fork",
    "test_asyncio",
]


def inherent(tests):
    """They assert that pymalloc serves objects: that it counts them, tells of its pools, and that the
    allocators of all domains are the interpreter's own ones, which have a name."""
    names = set()
    if "test_sys" in tests:
        names.add("test_getallocatedblocks")
        if sys.version_info >= (3, 11):
            names.add("test_debugmallocstats")
    if "test_cmd_line" in tests and importlib.util.find_spec("_testcapi"):
        names.add("test_pythonmalloc")
    return names


def failures(tests, environment):
    """Names of the test cases that failed. From the text: the XML leaves subtests out."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "test", "-W", "--timeout", "300", *tests],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    if not re.search(r"(?m)^(Tests result|Result): ", done.stdout):
        sys.exit(f"the tests did not end, status {done.returncode}\n{done.stdout[-5000:]}")
    names = set(re.findall(r"(?m)^(?:FAIL|ERROR): (\w+) ", done.stdout))
    if done.returncode != 0 and not names:
        sys.exit(f"status {done.returncode} without a failure\n{done.stdout[-5000:]}")
    return names


def installed(name):
    """Some installations of CPython leave tests out."""
    folder = Path(sysconfig.get_path("stdlib")) / "test"
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    everything = os.environ.get("HAKMEM_SUITES") == "all"
    parser.add_argument("--all", action="store_true", default=everything, help="the whole list")
    parser.add_argument("--labels", choices=_launch.LABELS)
    parser.add_argument("tests", nargs="*", help="instead of the list")
    args = parser.parse_args()
    probe = subprocess.run(
        [sys.executable, "-c", "import test.test_gc, test.libregrtest"], capture_output=True
    )
    if probe.returncode != 0:
        print("this Python comes without its tests")
        sys.exit(77)
    tests = args.tests or [t for t in (WHOLE if args.all else SHORT) if installed(t)]
    # The background jobs of a shell ignore it, and the tests send it to themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with_hakmem = failures(tests, preloaded(all_domains=True, labels=args.labels))
    expected = with_hakmem & inherent(tests)
    suspicious = with_hakmem - expected
    without = failures(tests, plain_environment()) if suspicious else set()
    print(
        f"{len(tests)} files; expected failures: {sorted(expected)}; "
        f"also without hakmem: {sorted(suspicious & without)}"
    )
    missing = inherent(tests) - expected
    if missing and not FREE_THREADED:  # objects are in its own heap there
        sys.exit(f"passed, which they cannot with hakmem there: {sorted(missing)}")
    if suspicious - without:
        sys.exit(f"failed only with hakmem: {sorted(suspicious - without)}")


if __name__ == "__main__":
    main()
