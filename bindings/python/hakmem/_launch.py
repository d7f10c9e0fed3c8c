"""How a Python is started under hakmem: which environment, which command."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HOOK = Path(__file__).with_name("libhakmem_pyhook.so")
LABELS = ("off", "native", "site")
# They make CPython put its own allocators back after the hook came in.
DISPLACING = ("PYTHONMALLOC", "PYTHONDEVMODE")
# What the hook is told; HAKMEM_PYTHON shows a report on stderr.
VARIABLES = ("HAKMEM_DOMAINS", "HAKMEM_LIMIT", "HAKMEM_LABELS", "HAKMEM_REPORT", "HAKMEM_PYTHON")
# An interpreter alone needs less, whatever its start-up files import.
ENOUGH = 64 << 20


def unusable():
    """Why the hook cannot be preloaded, in a line; None if it can."""
    if re.search("[ :$]", str(HOOK)):
        return f"{HOOK}: LD_PRELOAD takes no path with a space, ':' or '$'; install hakmem elsewhere"
    return None


def settings(*, all_domains=False, limit=None, labels=None, report=None):
    """The variables that the hook reads, and LD_PRELOAD; what is preloaded already stays behind the hook."""
    preload = [p for p in re.split(r"[ :]+", os.environ.get("LD_PRELOAD", "")) if p]
    hook = str(HOOK)
    values = {"LD_PRELOAD": ":".join([hook] + [p for p in preload if p != hook])}
    values["HAKMEM_DOMAINS"] = "all" if all_domains else "raw"
    if limit is not None:
        values["HAKMEM_LIMIT"] = str(limit)
    if labels is not None:
        values["HAKMEM_LABELS"] = labels
    if report is not None:
        # The program may be in another folder when it ends.
        values["HAKMEM_REPORT"] = report if report in ("", "-") else os.path.abspath(report)
    if report == "-":
        values["HAKMEM_PYTHON"] = sys.executable
    return values


def without(environment):
    """The same for a program that is not to be under hakmem."""
    result = {k: v for k, v in environment.items() if not k.startswith("HAKMEM_")}
    preload = [p for p in re.split(r"[ :]+", result.pop("LD_PRELOAD", "")) if p and p != str(HOOK)]
    if preload:
        result["LD_PRELOAD"] = ":".join(preload)
    return result


def environment(warn, **options):
    """A whole environment for a program under hakmem."""
    result = without(os.environ)
    for name in DISPLACING:
        if result.pop(name, ""):
            warn(f"{name} is set and would take the allocator back; it is removed for the program")
    result.update(settings(**options))
    # Who shows the report at the end, in a folder of its own: it must find this package from there.
    result["HAKMEM_PYTHON"] = sys.executable
    if result.get("PYTHONPATH"):
        entries = result["PYTHONPATH"].split(os.pathsep)
        result["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, entries))
    return result


def needed(limit, flags, environment):
    """None if an interpreter starts under the limit, else one under which it does."""
    if limit is None or limit >= ENOUGH:
        return None

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

    if limit == 0 or start():
        return None
    with tempfile.TemporaryDirectory(prefix="hakmem-") as folder:
        file = os.path.join(folder, "r.json")
        if not start(HAKMEM_LIMIT="0", HAKMEM_REPORT=file):
            return None  # It is not the limit.
        with open(file, encoding="utf-8", errors="replace") as report:
            enough = json.load(report)["stats"]["committed_bytes"]
    # It may have been more on the way than it is at the end; and a number for people.
    step = 256 << 10
    enough = -(-enough // step) * step
    while not start(HAKMEM_LIMIT=str(enough)):
        enough += step
    return enough


def missing(program):
    """Whether Python would end at once because there is no such program. It says so itself."""
    if program[0] == "-c":
        return False
    if program[0] == "-m":
        return importlib.util.find_spec(program[1].partition(".")[0] or " ") is None
    return program[0] != "-" and not os.access(program[0], os.R_OK)


def interpreter_flags(warn):
    """The options that this interpreter was started with, for the program's."""
    flags = subprocess._args_from_interpreter_flags()
    if sys.flags.dev_mode:
        warn("-X dev would take the allocator back; it is removed for the program")
        at = flags.index("dev") if "dev" in flags else -1
        flags = flags[: at - 1] + flags[at + 1 :] if at > 0 else [f for f in flags if f != "-Xdev"]
    return flags
