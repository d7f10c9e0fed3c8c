"""How the parts of scripts/demo look: headings, colours, bars."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from . import tool

WIDTH = 100
BAR, BAR_ROOM = 26, 35  # characters for a ratio of 1, and at most
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def heading(number, text, note=""):
    title = f"{number}  {text}"
    print()
    print(paint("1", title) + (f"{note:>{WIDTH - len(title)}}" if note else ""))
    print()


def bar(ratio):
    """In eighths of a character."""
    eighths = min(round(ratio * BAR * 8), BAR_ROOM * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def add_build(parser):
    parser.add_argument(
        "--build", type=Path, default=tool.ROOT / "build/release", metavar="DIR", help="build/release"
    )


def add_number(parser):
    parser.add_argument("--number", type=int, default=1, help="of the first heading (1)")


def pages(build):
    """The folder for the pages that the demonstration writes."""
    folder = build.resolve() / "demo"
    folder.mkdir(exist_ok=True)
    return folder


def profile(build, report, rows, indent="   "):
    """A report with a profile: its table, and where it is as a page for a browser."""
    command = build / "bindings/report/hakmem"
    if not command.exists():
        print(f"{indent}{report}; the command hakmem, which reads it, was not built (jansson, protobuf-c, zlib)")
        return
    done = subprocess.run([command, "report", "-n", str(rows), report], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    table = next(i for i, line in enumerate(lines) if " stacks, " in line)
    end = next((i for i, line in enumerate(lines[table:], table) if line.startswith("context ")), len(lines))
    for line in lines[table:end]:
        # Of files, their names.
        line = re.sub(r"([(<])([^()<>]*/)([^/()<>]+:\d+)(?=[)>])", r"\1\3", line)
        # Of the numbers those that a place is known by: what is live, and what was at the peak.
        cells = re.split(r"  +", line.strip())
        if len(cells) == 6:
            live, _, peak, _, label, site = cells
            line = f"  {live:>11}{peak:>13}  {label:<16} {site}"
        # A row may end within its place; a sentence goes on in the next line.
        text = f"{indent}{line[2:]}"
        print(text[:WIDTH] if len(cells) > 2 or not text.strip() else textwrap.fill(text, WIDTH, subsequent_indent=indent))
    page = report.with_suffix(".html")
    if subprocess.run([command, "html", "-o", page, report], capture_output=True).returncode == 0:
        print(f"\n{indent}Flame graph, treemap, table: " + paint("1", f"file://{page}"))
