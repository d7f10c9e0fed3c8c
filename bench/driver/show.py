"""How the parts of scripts/demo look: headings, colours, bars."""

import os
import sys
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
