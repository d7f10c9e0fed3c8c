"""Commands of the program that reads reports, which pip builds where its libraries are: `python -m hakmem top` is
`hakmem top`."""

import os

from hakmem._launch import FOLDER
from hakmem._run import fail

VIEWER = os.path.join(FOLDER, "hakmem-viewer")
COMMANDS = {
    "attach": "what a process that listens holds, refreshed; with -o, its report now",
    "top": "the same view of a socket, or of a file that changes",
    "html": "a report as one page for a browser",
    "pprof": "a report for `go tool pprof`",
    "folded": "stacks of a report for flamegraph.pl and inferno",
    "speedscope": "a report for speedscope",
    "policy": "whether policies are sound, and in what two of them differ",
    "prometheus": "contexts and labels of a report in Prometheus' text format",
}


def is_program(path):
    """Whether it can be started, and is not the script that starts this."""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(2) != b"#!"
    except OSError:
        return True


def program():
    """The one of this package, or else the one in PATH; None without any."""
    places = [os.path.join(folder, "hakmem") for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return next((path for path in [VIEWER, *places] if is_program(path)), None)


def takes(words):
    """Whether the command `hakmem` of these words is the program's: `report` and `diff` are, but for processes by
    their number, which the package asks itself."""
    if not words or words[0] in COMMANDS:
        return bool(words)
    own = any(word == "--json" or (word.isdecimal() and not os.path.exists(word)) for word in words[1:])
    return words[0] in ("report", "diff") and not own and program() is not None


def start(arguments):
    """Does not return."""
    found = program()
    if not found:
        fail(
            f"{arguments[0]}: there is no program hakmem in PATH, and this package was built without it"
            " (Debian packages: libjansson-dev libprotobuf-c-dev protobuf-c-compiler zlib1g-dev)"
        )
    try:
        os.execv(found, ["hakmem", *arguments])
    except OSError as error:
        fail(f"{found}: {error.strerror}")
