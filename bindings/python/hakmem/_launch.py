"""How a Python is started under hakmem: which environment, which command."""

import os
import re
import subprocess
import sys
from pathlib import Path

HOOK = Path(__file__).with_name("libhakmem_pyhook.so")
LABELS = ("off", "native", "site")
# They make CPython put its own allocators back after the hook came in.
DISPLACING = ("PYTHONMALLOC", "PYTHONDEVMODE")


def size(text):
    """Bytes: 1000, 64K, 512M, 2G."""
    match = re.fullmatch(r"([0-9]{1,20})([KMGT]?)", text)
    if not match:
        raise ValueError(f"'{text}' is no size; it is a number of bytes, or one with K, M, G or T")
    value = int(match[1]) << 10 * (" KMGT".index(match[2]) if match[2] else 0)
    if value >= 1 << 64:
        raise ValueError(f"'{text}' is more than addresses reach")
    return value


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
        values["HAKMEM_LIMIT"] = limit
    if labels is not None:
        values["HAKMEM_LABELS"] = labels
    if report is not None:
        # The program may be in another folder when it ends.
        values["HAKMEM_REPORT"] = report if report in ("", "-") else os.path.abspath(report)
    return values


def environment(warn, **options):
    """A whole environment for a program under hakmem."""
    result = {k: v for k, v in os.environ.items() if not k.startswith("HAKMEM_")}
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


def interpreter_flags(warn):
    """The options that this interpreter was started with, for the program's."""
    flags = subprocess._args_from_interpreter_flags()
    if sys.flags.dev_mode:
        warn("-X dev would take the allocator back; it is removed for the program")
        at = flags.index("dev") if "dev" in flags else -1
        flags = flags[: at - 1] + flags[at + 1 :] if at > 0 else [f for f in flags if f != "-Xdev"]
    return flags
