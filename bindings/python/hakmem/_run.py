"""`python -m hakmem run`. It becomes the program that it starts, which waits for it: nothing is imported here
that a Python has not imported already when it starts."""

import os
import sys

from hakmem import _launch

UNITS = {"K": 10, "M": 20, "G": 30}


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


def start(program, *, all_domains, malloc, limit, labels, profile, live, report, mode=None, policy=None, learn=None):
    """program: as Python takes it. Does not return."""
    check_labels(labels, all_domains)
    if profile is not None and live is None and report == "-":
        fail("--profile needs --report FILE or --live: stacks are not in the text")
    flags = _launch.interpreter_flags(sys.orig_argv[1:], warn)
    command = [sys.executable, *flags, *program]
    if _launch.missing(program):
        os.execve(sys.executable, command, _launch.without(os.environ))
    environment = _launch.environment(
        warn,
        all_domains=all_domains,
        malloc=malloc,
        limit=limit,
        labels=labels,
        profile=profile,
        live=live,
        report=report or None,
        mode=mode,
        policy=policy,
        learn=learn,
    )
    check_limit(limit, flags, environment)
    os.execve(sys.executable, command, environment)


def size(text):
    """Of what most people write; None: the whole parser knows more."""
    unit = UNITS.get(text[-1:].upper())
    digits = text[:-1] if unit else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    return int(digits) << (unit or 0)


def parse(words):
    """The options and the program; None: this is for the whole parser, and so are errors."""
    options = {"all_domains": False, "malloc": False, "limit": None, "labels": None, "profile": None, "live": None, "report": "-"}
    words = list(words)
    while words and words[0].startswith("--"):
        name, equals, value = words.pop(0).partition("=")
        if name in ("--all", "--malloc") and not equals:
            options["all_domains" if name == "--all" else "malloc"] = True
            continue
        if name in ("--profile", "--live") and not equals:
            options[name[2:]] = ""
            continue
        if not equals:
            if not words:
                return None
            value = words.pop(0)
            if value.startswith("-") and value != "-":
                return None
        if name == "--limit":
            value = size(value)
            if value is None:
                return None
        elif name == "--profile":
            if value != "exact" and size(value) is None:
                return None
        elif name == "--labels":
            if value not in _launch.LABELS:
                return None
        elif name == "--mode":
            if value not in _launch.MODES:
                return None
        elif name not in ("--live", "--report", "--policy", "--learn"):
            return None
        options[name[2:]] = value
    if not words or (words[0].startswith("-") and words[0] not in ("-", "-c", "-m")):
        return None
    if words[0] in ("-c", "-m") and len(words) < 2:
        return None
    return words, options


def main(words):
    """Returns if it is for the whole parser."""
    parsed = parse(words)
    if parsed is None:
        return
    why = _launch.unusable()
    if why:
        fail(why)
    program, options = parsed
    try:
        start(program, **options)
    except OSError as error:
        fail(error)
