"""How a Python is started under hakmem: which environment, which command."""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
HOOK = os.path.join(FOLDER, "libhakmem_pyhook.so")
# In front of libc's malloc; what comes to it goes to the hook.
MALLOC = os.path.join(FOLDER, "libhakmem_pymalloc.so")
MODES = ("balanced", "minimal", "fast", "lean")
MEMORY = ("cheap", "normal", "dear")
LABELS = ("off", "native", "site")
REUSED = ("on", "off")
# They make CPython put its own allocators back after the hook came in.
DISPLACING = ("PYTHONMALLOC", "PYTHONDEVMODE")
# What the hook is told.
VARIABLES = ("HAKMEM_DOMAINS", "HAKMEM_LIMIT", "HAKMEM_LABELS", "HAKMEM_PROFILE", "HAKMEM_PROFILE_WINDOW", "HAKMEM_LIVE", "HAKMEM_REPORT", "HAKMEM_MODE", "HAKMEM_POLICY", "HAKMEM_LEARN", "HAKMEM_RESERVE", "HAKMEM_MEMORY", "HAKMEM_PRICE", "HAKMEM_REUSED")
# What the hook leaves for the processes that this one starts: which of them was the first.
OF_THE_FIRST = "HAKMEM_PID"
# An interpreter alone needs less, whatever its start-up files import.
ENOUGH = 64 << 20


def unusable(malloc=False):
    """Why the hook cannot be preloaded, in a line; None if it can. Of a file that is not there the loader only
    warns."""
    if any(c in HOOK for c in " :$"):
        return f"{HOOK}: LD_PRELOAD takes no path with a space, ':' or '$'; install hakmem elsewhere"
    gone = next((file for file in ([HOOK, MALLOC] if malloc else [HOOK]) if not os.access(file, os.R_OK)), None)
    return f"{gone} is not there, or cannot be read; install hakmem again" if gone else None


def preloaded():
    """What is preloaded beside the hook."""
    files = os.environ.get("LD_PRELOAD", "").replace(":", " ").split(" ")
    return [file for file in files if file and file not in (HOOK, MALLOC)]


def live_wrong(text, off=True):
    """What is expected, of a text that does not say where the program is shown, or `off`, that it is not; None: it
    does. The same as hkc_live_setting of the hook, which a command line comes before."""
    if text == "on" or "/" in text or (off and text in ("", "off")):
        return None
    return f"{'on, off' if off else 'on'} or a path with a slash expected"


def is_window(text):
    """Whether it is a time, or "off". What is too long or too short the hook says."""
    unit = next((unit for unit in ("ms", "min", "s", "m", "h", "d") if text.endswith(unit)), "")
    digits = text[: len(text) - len(unit)]
    return text == "off" or (digits.isascii() and digits.isdigit() and len(digits) < 12 and int(digits) > 0)


def settings(*, all_domains=False, malloc=False, limit=None, labels=None, profile=None, profile_window=None, live=None, report=None, mode=None, policy=None, learn=None, reserve=None, memory=None, price=None, reused=None):
    """The variables that the hook reads, and LD_PRELOAD; what is preloaded already stays behind the hook."""
    ours = [MALLOC, HOOK] if malloc else [HOOK]
    values = {"LD_PRELOAD": ":".join([*ours, *preloaded()])}
    values["HAKMEM_DOMAINS"] = "all" if all_domains else "raw"
    if limit is not None:
        values["HAKMEM_LIMIT"] = str(limit)
    if reserve is not None:
        values["HAKMEM_RESERVE"] = str(reserve)
    if memory is not None:
        values["HAKMEM_MEMORY"] = memory
    if price is not None:
        values["HAKMEM_PRICE"] = str(price)
    if labels is not None:
        values["HAKMEM_LABELS"] = labels
    if profile is not None:
        values["HAKMEM_PROFILE"] = profile or "on"
    if reused is not None:
        values["HAKMEM_REUSED"] = reused
    if profile_window is not None:
        values["HAKMEM_PROFILE_WINDOW"] = profile_window
    if live not in (None, "off"):
        values["HAKMEM_LIVE"] = "on" if live in ("", "on") else os.path.abspath(live)
    if mode is not None:
        values["HAKMEM_MODE"] = mode
    if policy is not None:
        values["HAKMEM_POLICY"] = os.path.abspath(policy)
    if learn is not None:
        values["HAKMEM_LEARN"] = os.path.abspath(learn)
    if report is not None:
        # The program may be in another folder when it ends.
        values["HAKMEM_REPORT"] = report if report in ("", "-") else os.path.abspath(report)
    return values


def without(environment):
    """The same for a program that is not to be under hakmem."""
    result = {k: v for k, v in environment.items() if not k.startswith("HAKMEM_")}
    preload = preloaded()
    result.pop("LD_PRELOAD", None)
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
    return result


def missing(program):
    """Whether Python would end at once because there is no such program. It says so itself."""
    if program[0].startswith("-c"):
        return False
    if program[0].startswith("-m"):
        # runpy, of `python -m hakmem`, has imported it.
        from importlib import util

        name = program[0][2:] or program[1]
        return util.find_spec(name.partition(".")[0] or " ") is None
    return program[0] != "-" and not os.access(program[0], os.R_OK)


def interpreter_flags(words, warn):
    """The interpreter's options at the beginning of a command, for the program's."""
    flags, words = [], list(words)
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word = words.pop(0)
        if word.startswith("--"):
            flags.append(word)
            if word == "--check-hash-based-pycs":
                flags += words[:1]
                del words[:1]
            continue
        # Letters up to one with a value: -Bc code, -WXdev, -Xdev.
        at = next((i for i, letter in enumerate(word) if i and letter in "cmWX"), len(word))
        if word[at : at + 1] in ("c", "m"):
            return flags + [word[:at]] * (at > 1)
        value = word[at + 1 :]
        if at < len(word) and not value:
            value = words.pop(0) if words else ""
        if word[at : at + 1] == "X" and value == "dev":
            warn("-X dev would take the allocator back; it is removed for the program")
            flags += [word[:at]] * (at > 1)
        elif at < len(word):
            flags += [word[: at + 1], value]
        else:
            flags.append(word)
    return flags
