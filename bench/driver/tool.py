"""What the tools that compare runtimes share: arguments, programs of a build, tables, the result files."""

import datetime
import json
import os
import shlex
import sys
from pathlib import Path

from . import machine

ROOT = Path(__file__).resolve().parents[2]


def fail(text):
    sys.exit(f"{Path(sys.argv[0]).name}: {text}")


def cpu(run):
    """Seconds of a run, a result of the program measure."""
    return run["user_s"] + run["sys_s"]


def selected(text, allowed, what):
    """The names of a comma-separated list, checked; None = all."""
    if text is None:
        return list(allowed)
    names = text.split(",")
    for name in names:
        if name not in allowed:
            fail(f"unknown {what} '{name}'; allowed are {', '.join(allowed)}")
    return names


def known(names, existing, what):
    """The names of a list of arguments, checked; none = all."""
    for name in names:
        if name not in existing:
            fail(f"unknown {what} '{name}'; there are {', '.join(existing)}")
    return list(names or existing)


def built(build, name):
    """A program of the build tree, None when it was left out."""
    path = build / name
    return path if path.exists() else None


def pin(cpu):
    allowed = sorted(os.sched_getaffinity(0))
    if cpu is None:
        cpu = allowed[-1]
    if cpu not in allowed:
        fail(f"CPU {cpu} is not available; allowed are {', '.join(map(str, allowed))}")
    os.sched_setaffinity(0, {cpu})
    return cpu


def add_build(parser, folder, what):
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "build/release" / folder,
        metavar="DIR",
        help=f"where {what} built (build/release/{folder})",
    )


def add_cpu(parser):
    parser.add_argument("--cpu", type=int, help="CPU to run on (the last one)")


def add_seed(parser):
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")


def add_outputs(parser, what="tables"):
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help=f"write the {what} there as Markdown, between the marks of this tool if the file exists",
    )
    parser.add_argument(
        "--dirty",
        action="store_true",
        help="write into docs/ also with changes that are not committed; the page says so",
    )


def check_outputs(options):
    """Before anything is measured: what goes into docs/ must come from a commit that others can have."""
    if options.markdown is None or options.dirty or ROOT / "docs" not in options.markdown.resolve().parents:
        return
    commit = machine.commit(ROOT)
    if not machine.publishable(commit):
        fail(
            f"{options.markdown} is a published page and the tree is at {commit}; commit first, write "
            "elsewhere, or give --dirty"
        )


def about(versions, pinned_to=None):
    """What a result file says of the run: when, by which command, where, with what."""
    script = "/".join(Path(sys.argv[0]).resolve().parts[-3:])
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join([script] + sys.argv[1:]),
        "machine": machine.brief(pinned_to),
        "versions": {
            "revision": machine.commit(ROOT),
            **versions,
        },
    }


def caption(about, hakmem, *measured):
    """A sentence of `about` for a page; `hakmem` names what the revision is of."""
    where, versions = about["machine"], about["versions"]
    thp = where["thp"].partition("[")[2].partition("]")[0]
    return (
        f"`{about['command']}`, {about['date'][:10]}, {hakmem} ({versions['revision']}), "
        f"{', '.join(measured)}, {where['cpu']}, Linux {where['kernel'].split('-')[0]}, THP {thp}."
    )


def markdown_table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def plain_table(header, rows):
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    lines = []
    for row in [header] + rows:
        cells = [row[0].ljust(widths[0])] + [
            cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def write_json(path, about, **results):
    with open(path, "w") as f:
        json.dump({"version": 1, **about, **results}, f, indent=1)
        f.write("\n")


def write_markdown(path, text):
    """Puts text between the marks of this tool in the file, which is made when it is not there."""
    tool = Path(sys.argv[0]).name
    begin, end = f"<!-- begin {tool} -->\n", f"<!-- end {tool} -->\n"
    old = path.read_text() if path.exists() else begin + end
    before, found, rest = old.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        fail(f"{path} has no lines '{begin.strip()}' and '{end.strip()}' to put the tables between")
    path.write_text(before + begin + text + "\n" + end + after)


class Progress:
    """One line that counts up, on a terminal only."""

    def __init__(self, total):
        self.done, self.total, self.on = 0, total, sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        if self.on:
            print(f"\r{self.done}/{self.total} {what:<50}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.on:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
