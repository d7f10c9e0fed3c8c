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
# What the hook is told: options of `run` and `env` by their names, and the variable of each.
SETTINGS = {
    name: f"HAKMEM_{name.upper()}"
    for name in ("limit", "reserve", "memory", "price", "labels", "profile", "profile_window", "live", "mode", "policy", "learn", "report", "reused")
}
VARIABLES = ("HAKMEM_DOMAINS", *SETTINGS.values())
# Of those that are names of files, what is none.
WORDS = {"policy": (), "learn": (), "live": ("", "on"), "report": ("", "-")}
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


def settings(*, all_domains=False, malloc=False, **options):
    """The variables that the hook reads, and LD_PRELOAD; what is preloaded already stays behind the hook."""
    ours = [MALLOC, HOOK] if malloc else [HOOK]
    values = {"LD_PRELOAD": ":".join([*ours, *preloaded()]), "HAKMEM_DOMAINS": "all" if all_domains else "raw"}
    for name, variable in SETTINGS.items():
        value = options.get(name)
        if value is None or (name == "live" and value == "off"):
            continue
        if name in ("profile", "live"):
            value = value or "on"
        # The program may be in another folder when the file is read or written.
        values[variable] = os.path.abspath(value) if value not in WORDS.get(name, (value,)) else str(value)
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
