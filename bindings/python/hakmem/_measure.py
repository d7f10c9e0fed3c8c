"""What a piece of a program took: for the pytest plugin and the magic of IPython."""

import gc
import os

from hakmem import _api, _hakmem, _report
from hakmem._snapshot import take_snapshot

OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def ready():
    """Makes hakmem serve this process, if it does not yet. RuntimeError: it cannot, and why."""
    if _api.serves("obj"):
        return
    try:
        _api.install("all", labels="site")
    except RuntimeError:
        _api.install("all")  # where there are no lines


def parse(text):
    """Bytes: a number, or a text such as "64 MB". ValueError: neither."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no size")
    return _hakmem.parse_size(text.replace(" ", ""))


class Measure:
    """Of live memory, from here to stop(): `peak` above what was live before, and `kept` of it, without
    garbage. before: with a snapshot of now, for changes()."""

    def __init__(self, before=False):
        gc.collect()
        self.before = take_snapshot() if before else None
        _api.reset_peak()
        self.start = _api.get_traced_memory()[0]
        self.peak = self.kept = 0

    def stop(self):
        self.peak = max(0, _api.get_traced_memory()[1] - self.start)
        gc.collect()
        self.kept = _api.get_traced_memory()[0] - self.start

    def changes(self, top):
        """The largest ones, by line where lines are known, as lines of text."""
        now, before = take_snapshot(), self.before
        by = "lineno" if "sites" in now.parts and "sites" in before.parts else "label"
        found = [d for d in now.compare_to(before, by) if d.size_diff > 0 and not d.key.startswith(OWN)]
        return [f"{_report.amount(d.size_diff):>12}  {d.count_diff:+,} blocks  {d.key}" for d in found[:top]]
