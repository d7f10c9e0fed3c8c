"""What a debugger sees of the USDT probes of samples."""

import re
import shutil
import subprocess

there = shutil.which("gdb") is not None


def stops(command, **options):
    """Runs a program, and stops at the first sample and at the first free of one.

    Gives the arguments of both, None where it did not stop there, and all that was printed. None = nothing may be traced.
    """
    script = [
        "set breakpoint pending on",
        "break -probe-stap otel_memory:alloc",
        "run",
        'printf "\\nsample %lu %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2',
        "delete",
        "break -probe-stap otel_memory:free",
        "continue",
        'printf "\\nfreed %lu\\n", $_probe_arg0',
        "delete",
        "continue",
    ]
    words = [word for line in script for word in ("-ex", line)]
    start = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *words, "--args", *command]
    done = subprocess.run(start, capture_output=True, text=True, timeout=120, check=False, **options)
    if re.search(r"ptrace|Operation not permitted", done.stdout + done.stderr):
        return None
    made, freed = (re.search(rf"^{name}((?: \d+)+)$", done.stdout, re.M) for name in ("sample", "freed"))
    return tuple(found and [int(n) for n in found[1].split()] for found in (made, freed)) + (done.stdout + done.stderr,)


def exact_sample(case, command):
    """A test's program allocates 3000 bytes or more and frees them, with an exact profile: the debugger stops at both."""
    seen = stops(command)
    if seen is None:
        case.skipTest("nothing may be traced here")
    sample, freed, text = seen
    case.assertIn("All tests passed", text)
    case.assertTrue(sample and freed, text)
    case.assertGreaterEqual(sample[1], 3000)
    case.assertEqual(sample[2], sample[1], "exact: it stands for itself")
    case.assertEqual(freed[0], sample[0])
