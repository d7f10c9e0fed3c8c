"""python -m hakmem: programs under hakmem, and their reports."""

import argparse
import json
import os
import shlex
import sys

from hakmem import _check, _hakmem, _launch, _pass, _remote, _report, _run
from hakmem._run import check_labels, check_limit, fail, warn
from hakmem._snapshot import Snapshot


# Of options whose values the quick parser knows.
EXPECTED = {
    "--memory": "cheap, normal, dear or a size from 1M to 1T expected",
    "--price": "1 to 1000000 expected, millionths of the CPU time for a MiB",
    "--reserve": "4M to 1T expected",
    "--profile-window": "60s, 5m, 1h or off expected",
    "--live": "on, off or a path with a slash expected",
}


def size(text):
    try:
        return _hakmem.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def size_or_none(text):
    """For an option that takes words, too, which its own message names."""
    try:
        return _hakmem.parse_size(text)
    except ValueError:
        return None


def kind(name, reads=size):
    """What the quick parser takes as a value of the option, with sizes of all kinds."""

    def value(text):
        found = _run.value_of(name, text, reads)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r}: {EXPECTED[name]}")
        return found

    return value


def hook_of(args):
    """What options_of_hook() takes, as the hook's settings."""
    return {"all_domains": args.all, **{name: getattr(args, name) for name in ("malloc", *_launch.SETTINGS)}}


def run(args):
    wrong = _run.wrong(args.program)
    if wrong:
        fail(f"run: {wrong}")
    _run.start(args.program, **hook_of(args))


def env(args):
    check_labels(args.labels, args.all)
    if args.profile_window is not None and args.profile is None:
        fail("--profile-window needs --profile: there are windows in profiles alone")
    values = _launch.settings(**hook_of(args))
    check_limit(args.limit, [], {**_launch.without(os.environ), **values})
    for name, value in values.items():
        print(f"export {name}={shlex.quote(value)}")
    for name in (*_launch.DISPLACING, *_launch.VARIABLES, _launch.OF_THE_FIRST):
        if name not in values:
            print(f"unset {name}")


def report(args):
    found = load(args.file).report
    print(json.dumps(found) if args.json else _report.text(found))


def diff(args):
    print(_report.difference(load(args.before), load(args.after)))


def check(args):
    check_labels(args.labels, args.all)
    sys.exit(_check.check(args.all, args.labels))


def trim(args):
    failed = False
    for pid in args.pid:
        try:
            before, after = _remote.trim(pid)
        except (OSError, ValueError) as error:
            warn(f"{pid}: {error}")
            failed = True
        else:
            print(f"{pid}: resident {_report.amount(before)} -> {_report.amount(after)}")
    sys.exit(failed)


def load(source):
    """A report file, or the number of a running program."""
    try:
        if source.isdecimal() and not os.path.exists(source):
            try:
                return Snapshot(_remote.report(int(source)))
            except (OSError, ValueError, OverflowError) as error:
                fail(f"{source}: {error}")
        return Snapshot.load(source)
    except (OSError, ValueError) as error:
        fail(str(error))


def option_of_labels(parser):
    parser.add_argument("--labels", choices=_launch.LABELS, help="what blocks are counted by: domain (off), part of the interpreter (native), line too (site)")


def options_of_hook(parser, report):
    parser.add_argument("--all", action="store_true", help="all of Python's memory, not only RAW and arenas")
    parser.add_argument("--malloc", action="store_true", help="also what C code takes from malloc")
    parser.add_argument("--limit", metavar="SIZE", type=size, help="hard limit: bytes, or 64K, 512M, 1.5G")
    option_of_labels(parser)
    parser.add_argument("--mode", choices=_launch.MODES, help="memory against speed (lean)")
    parser.add_argument("--policy", metavar="FILE", help="numbers and hints that go before those of the mode")
    parser.add_argument("--learn", metavar="FILE", help="begin with the policy in the file, learn, write it at exit")
    parser.add_argument(
        "--memory",
        metavar="WORD|SIZE",
        type=kind("--memory", size_or_none),
        help="what memory is worth: cheap, normal, dear; or a size to spend for speed",
    )
    parser.add_argument(
        "--price",
        metavar="N",
        type=kind("--price"),
        help="what a MiB is worth, in millionths of the CPU time: 1 to 1000000",
    )
    parser.add_argument(
        "--reserve",
        metavar="SIZE",
        type=kind("--reserve"),
        help="addresses reserved at the start, 4M to 1T (none)",
    )
    parser.add_argument(
        "--profile",
        metavar="[RATE]",
        type=kind("--profile"),
        help="stacks in the report, of a block in each so many bytes (--profile=64K; 512K), or of all blocks "
        "(--profile=exact)",
    )
    parser.add_argument(
        "--profile-window",
        metavar="TIME",
        type=kind("--profile-window"),
        help="how long a window of the profile is, 60s, 5m or 1h, or off (60s): after five of them reports say what grows",
    )
    parser.add_argument(
        "--reused",
        choices=_launch.REUSED,
        help="whether objects from CPython's free lists, of 3.13 and later, get the line that takes them (on with "
        "--labels site and --profile=exact)",
    )
    parser.add_argument(
        "--live",
        metavar="[SOCKET]",
        type=kind("--live"),
        help="`hakmem attach PID` and `hakmem top PID` show the program while it runs (--live=SOCKET: at a path with "
        "a slash, %%p is the process's number; --live=off: not)",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        default=report,
        help="report at exit as JSON; %%p is the process's number, '-' text on stderr, '' none"
        + (" (-)" if report else ""),
    )


def parser():
    top = argparse.ArgumentParser(
        prog="python -m hakmem", description="Memory of Python programs under hakmem.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"hakmem {_hakmem.VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    def add(function, text, **options):
        command = commands.add_parser(function.__name__, help=text, description=text, allow_abbrev=False, **options)
        command.set_defaults(function=function)
        return command

    command = add(
        run,
        "run a program under hakmem",
        usage="%(prog)s [options] (script | -m module | -c code) [argument ...]",
        epilog="What follows the script, module or code are its own arguments.",
    )
    options_of_hook(command, "-")
    options_of_hook(add(env, "print the variables that put hakmem under every Python, for a shell"), None)
    command = add(report, "show a report, also one of a program that runs")
    command.add_argument("file", help="or the number of a process")
    command.add_argument("--json", action="store_true", help="as it is in files")
    command = add(check, "whether hakmem is really in, here or in a program that is started now")
    command.add_argument("--all", action="store_true", help="in all domains")
    option_of_labels(command)
    command = add(trim, "make running programs give unused memory back")
    command.add_argument("pid", type=int, nargs="+", help="of a program that was started under hakmem")
    command = add(diff, "what changed between two reports")
    command.add_argument("before", help="a file")
    command.add_argument("after", help="a file, or the number of a process")
    for name, text in _pass.COMMANDS.items():
        commands.add_parser(name, help=text)
    top.commands = commands.choices
    return top


def meant(word, command):
    """Of the options of a command, what a word that is none may stand for: ", did you mean --all?" or ""."""
    from difflib import get_close_matches
    from re import findall

    name = word.partition("=")[0]
    known = dict.fromkeys(findall(r"--[a-z]+", command.format_help()))
    near = [option for option in known if len(name) > 2 and option.startswith(name)] or get_close_matches(name, known, 1)
    return f", did you mean {' or '.join(near)}?" if near and word.startswith("--") else ""


def parse_all(words):
    top = parser()
    args, unknown = top.parse_known_args(words)
    if unknown:
        command = top.commands[args.command]
        command.error(f"unrecognized arguments: {' '.join(unknown)}{meant(unknown[0], command)}")
    return args


def call(args):
    try:
        args.function(args)
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def parse(words):
    """The arguments of a program are not seen by argparse, which would take some of them for ours."""
    if words[:1] not in (["run"], ["env"]):
        return parse_all(words)
    ours, program = _run.split(words[1:])
    if words[0] == "env":
        return parse_all(["env", *ours, *program])
    args = parse_all(["run", *ours])
    args.program = program
    return args


def main(arguments=None):
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in _pass.COMMANDS:
        _pass.start(given)
    args = parse(given)
    why = _launch.unusable(getattr(args, "malloc", False)) if args.function in (run, env, check) else None
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
