"""`python -m hakmem run`. It becomes the program that it starts, which waits for it: nothing is imported here
that a Python has not imported already when it starts."""

import os
import sys

from hakmem import _launch

UNITS = {"K": 10, "M": 20, "G": 30}
# Of `run` and `env`: options whose value may be left out, so that the next word is never theirs, and the others with a
# value.
OPTIONAL = ("--profile", "--live")
VALUED = tuple("--" + name.replace("_", "-") for name in _launch.SETTINGS if name not in ("profile", "live"))
CHOICES = {"--labels": _launch.LABELS, "--mode": _launch.MODES, "--reused": _launch.REUSED}


def warn(message):
    if sys.stderr is not None:
        try:
            print(f"hakmem: {message}", file=sys.stderr)
        except OSError:
            pass


def fail(message):
    warn(message)
    sys.exit(2)


def check_labels(labels, all_domains):
    if labels == "site" and not all_domains:
        fail("--labels site needs --all: objects in pymalloc's arenas have no lines")


def check_limit(limit, flags, environment):
    if limit is None or not 0 < limit < _launch.ENOUGH:
        return
    from hakmem import _limit

    _limit.check(limit, flags, environment, fail)


def start(program, **options):
    """program: as Python takes it. Does not return."""
    labels, profile = options["labels"], options["profile"]
    check_labels(labels, options["all_domains"])
    if profile is not None and options["live"] in (None, "off") and options["report"] == "-":
        fail("--profile needs --report FILE or --live: stacks are not in the text")
    if options.get("profile_window") is not None and profile is None:
        fail("--profile-window needs --profile: there are windows in profiles alone")
    flags = _launch.interpreter_flags(sys.orig_argv[1:], warn)
    command = [sys.executable, *flags, *program]
    if _launch.missing(program):
        os.execve(sys.executable, command, _launch.without(os.environ))
    environment = _launch.environment(warn, **options | {"report": options["report"] or None})
    check_limit(options["limit"], flags, environment)
    os.execve(sys.executable, command, environment)


def split(words):
    """Our options, each with its value in one word, and the program with its arguments, which are its own."""
    ours, words = [], list(words)
    while words and words[0].startswith("-") and words[0] != "-" and words[0][1] not in "cm":
        word = words.pop(0)
        if word == "--":
            break
        if word in OPTIONAL:
            word += "="
        elif word in VALUED and words and (words[0] == "-" or not words[0].startswith("-")):
            word += "=" + words.pop(0)
        ours.append(word)
    return ours, words


def wrong(program):
    """Why it is none; None if it is one."""
    if not program:
        return "no program; give a script, -m and a module, or -c and code"
    if len(program) == 1 and program[0] in ("-c", "-m"):
        return f"{program[0]} needs {'code' if program[0] == '-c' else 'the name of a module'}"
    return None


def size(text):
    """Of what most people write; None: the whole parser knows more."""
    unit = UNITS.get(text[-1:].upper())
    digits = text[:-1] if unit else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    return int(digits) << (unit or 0)


def value_of(name, text, size=size):
    """None: this is for the whole parser, or no value of the option. size: reads bytes."""
    if name == "--limit":
        return size(text)
    if name == "--live":
        return None if _launch.live_wrong(text) else text
    if name == "--reserve":
        n = size(text)
        return n if n and 4 << 20 <= n <= 1 << 40 else None
    if name == "--profile-window":
        return text if _launch.is_window(text) else None
    if name == "--memory":
        if text in _launch.MEMORY:
            return text
        n = size(text)
        return str(n) if n and 1 << 20 <= n <= 1 << 40 else None
    if name == "--price":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= 1000000 else None
    if name == "--profile":
        return text if text in ("", "exact") or size(text) is not None else None
    if name in CHOICES:
        return text if text in CHOICES[name] else None
    return text if name in OPTIONAL or name in VALUED else None


def parse(words):
    """The program and the options; None: this is for the whole parser, and so are errors."""
    options = {"all_domains": False, "malloc": False, "limit": None, "labels": None, "profile": None, "live": None, "report": "-"}
    ours, program = split(words)
    for word in ours:
        name, equals, text = word.partition("=")
        if name in ("--all", "--malloc") and not equals:
            options["all_domains" if name == "--all" else "malloc"] = True
            continue
        value = value_of(name, text) if equals else None
        if value is None:
            return None
        options[name[2:].replace("-", "_")] = value
    return None if wrong(program) else (program, options)


def main(words):
    """Returns if it is for the whole parser."""
    parsed = parse(words)
    if parsed is None:
        return
    program, options = parsed
    why = _launch.unusable(options["malloc"])
    if why:
        fail(why)
    try:
        start(program, **options)
    except OSError as error:
        fail(error)
