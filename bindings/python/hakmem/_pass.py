"""Commands that the program hakmem has, which reads reports: `python -m hakmem top` is `hakmem top`."""

import os
import shutil

from hakmem._run import fail

COMMANDS = {
    "attach": "what a process that listens holds, refreshed; with -o, its report now",
    "top": "the same of a socket, or of a file that is written again",
    "html": "a report as one page for a browser",
    "pprof": "a report for `go tool pprof`",
    "folded": "stacks of a report for flamegraph.pl and inferno",
    "speedscope": "a report for speedscope",
    "prometheus": "contexts and labels of a report in Prometheus' text format",
}


def start(arguments):
    """Does not return."""
    program = shutil.which("hakmem")
    if not program:
        fail(f"{arguments[0]}: there is no program hakmem in PATH; it is hakmem's component 'report' (CMake)")
    try:
        os.execv(program, ["hakmem", *arguments])
    except OSError as error:
        fail(f"{program}: {error.strerror}")
