"""Whether an interpreter starts under a limit. It is tried for small ones, see _launch.ENOUGH."""

import os
import subprocess
import sys
import tempfile

from hakmem import _report


def needed(limit, flags, environment):
    """None if an interpreter starts under the limit, else one under which it does."""

    def start(**more):
        """Whether `pass` runs to its end."""
        command = [sys.executable, *flags, "-c", "pass"]
        done = subprocess.run(
            command,
            env={**environment, "HAKMEM_REPORT": "", **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.returncode == 0

    if start():
        return None
    with tempfile.TemporaryDirectory(prefix="hakmem-") as folder:
        file = os.path.join(folder, "r.json")
        if not start(HAKMEM_LIMIT="0", HAKMEM_REPORT=file):
            return None  # It is not the limit.
        enough = _report.parts(_report.load(file))["stats"]["committed_bytes"]
    # It may have been more on the way than it is at the end, by an arena of Python; and a number for people.
    step = 512 << 10
    enough = -(-(enough + (1 << 20)) // step) * step
    while not start(HAKMEM_LIMIT=str(enough)):
        enough += step
    return enough


def check(limit, flags, environment, fail):
    enough = needed(limit, flags, environment)
    if enough:
        fail(
            f"--limit: Python does not start with {_report.amount(limit)}; "
            f"it does with {_report.amount(enough)} here"
        )
