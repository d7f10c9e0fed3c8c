"""The magic of IPython and Jupyter: %%hakmem measures a cell, %hakmem a line."""

import argparse
import shlex

from hakmem import _measure, _report


class Wrong(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Wrong(message)


def parser():
    found = Parser(prog="%%hakmem", add_help=False)
    found.add_argument("--top", type=int, default=5, metavar="N")
    return found


def measured(run, top):
    measure = _measure.Measure(before=True)
    run()
    measure.stop()
    print(f"peak {_report.amount(measure.peak)} above what was live, kept {_report.amount(measure.kept)}")
    for line in measure.changes(max(0, top)):
        print(line)


def load(shell):
    def hakmem(line, cell=None):
        """%%hakmem [--top N]: runs the cell, and says what it had live at a time, what of it stays, and the N
        (5) lines of code that keep most. %hakmem STATEMENT: the same of one statement."""
        try:
            top = parser().parse_args(shlex.split(line)).top if cell is not None else parser().get_default("top")
            _measure.ready()
        except (Wrong, ValueError, RuntimeError) as error:
            print(f"%%hakmem: {error}")
            return
        measured(lambda: shell.run_cell(cell if cell is not None else line), top)

    shell.register_magic_function(hakmem, "line_cell", "hakmem")
