"""python -m hakmem: programs under hakmem, and their reports."""

import argparse
import contextlib
import os
import shlex
import sys

from hakmem import _check, _launch, _report
from hakmem._snapshot import Snapshot


def warn(message):
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"hakmem: {message}", file=sys.stderr)


def fail(message):
    warn(message)
    sys.exit(2)


def size(text):
    try:
        _launch.size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def run(args):
    if args.module == []:
        fail("run: -m needs the name of a module")
    program = ["-m", *args.module] if args.module else args.program
    if not program:
        fail("run: no program; give a script, or -m and a module")
    environment = _launch.environment(
        warn,
        all_domains=args.all,
        limit=args.limit,
        labels=args.labels,
        report=None if args.report == "" else args.report,
    )
    command = [sys.executable, *_launch.interpreter_flags(warn), *program]
    os.execve(sys.executable, command, environment)


def env(args):
    values = _launch.settings(all_domains=args.all, limit=args.limit, labels=args.labels, report=args.report)
    for name, value in values.items():
        print(f"export {name}={shlex.quote(value)}")
    for name in _launch.DISPLACING:
        print(f"unset {name}")


def report(args):
    print(_report.text(load(args.file).report))


def diff(args):
    print(_report.difference(load(args.before), load(args.after)))


def check(args):
    sys.exit(_check.check(args.all))


def trim(args):
    failed = False
    for pid in args.pid:
        try:
            before, after = _check.trim(pid)
        except (OSError, ValueError) as error:
            warn(f"{pid}: {error}")
            failed = True
        else:
            print(f"{pid}: resident {_report.amount(before)} -> {_report.amount(after)}")
    sys.exit(failed)


def load(path):
    try:
        return Snapshot.load(path)
    except (OSError, ValueError) as error:
        fail(str(error))


def options_of_hook(parser, report):
    parser.add_argument("--all", action="store_true", help="all of Python's memory, not only RAW and arenas")
    parser.add_argument("--limit", metavar="SIZE", type=size, help="hard limit: bytes, or with K, M, G")
    parser.add_argument("--labels", choices=_launch.LABELS, help="whom blocks are booked to (off)")
    parser.add_argument(
        "--report",
        metavar="FILE",
        default=report,
        help="report at exit as JSON; %%p is the process's number, '-' text on stderr, '' none"
        + (" (-)" if report else ""),
    )


def parser():
    top = argparse.ArgumentParser(
        prog="python -m hakmem", description="Memory of Python programs under hakmem."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    def add(function, text, **options):
        command = commands.add_parser(function.__name__, help=text, description=text, **options)
        command.set_defaults(function=function)
        return command

    command = add(
        run, "run a program under hakmem", usage="%(prog)s [options] (script | -m module) [argument ...]"
    )
    options_of_hook(command, "-")
    command.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="module", help="run a module")
    command.add_argument("program", nargs=argparse.REMAINDER, metavar="script", help="with its arguments")
    options_of_hook(add(env, "print the variables that put hakmem under every Python, for a shell"), None)
    add(report, "show a report").add_argument("file")
    command = add(check, "whether hakmem is really in, here or in a program that is started now")
    command.add_argument("--all", action="store_true", help="with all domains, if a program is started")
    command = add(trim, "make running programs give unused memory back")
    command.add_argument("pid", type=int, nargs="+", help="of a program that was started under hakmem")
    command = add(diff, "what changed between two reports")
    command.add_argument("before")
    command.add_argument("after")
    return top


def call(args):
    try:
        args.function(args)
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def main(arguments=None):
    args = parser().parse_args(arguments)
    why = _launch.unusable() if args.function in (run, env, check) else None
    if why:
        fail(why)
    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="backslashreplace")
    elif args.function is not run:
        fail("standard output is closed")
    try:
        call(args)
    except OSError as error:
        # What is still to be written must not fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            warn(error)
        sys.exit(2)
