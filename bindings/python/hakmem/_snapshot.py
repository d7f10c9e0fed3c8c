"""Snapshots, shaped like those of tracemalloc. A snapshot is a report, and is stored as one."""

from __future__ import annotations

import json
import mmap
from typing import NamedTuple

from hakmem import _hakmem, _report, _where


class Statistic(NamedTuple):
    """Live memory of one label, or of one place in the code."""

    key: str
    size: int
    count: int

    def __str__(self) -> str:
        return f"{self.key}: size={_report.amount(self.size)}, count={self.count}"


class StatisticDiff(NamedTuple):
    """The same, with what changed."""

    key: str
    size: int
    size_diff: int
    count: int
    count_diff: int

    def __str__(self) -> str:
        sign = "+" if self.size_diff >= 0 else "-"
        return (
            f"{self.key}: size={_report.amount(self.size)} ({sign}{_report.amount(abs(self.size_diff))}), "
            f"count={self.count} ({self.count_diff:+})"
        )


class Frame(NamedTuple):
    """Of a stack: a line of Python, or a function of an extension, which has no line here."""

    function: str
    filename: str
    lineno: int
    module: str
    native: bool

    def __str__(self) -> str:
        return f"{self.function} ({self.module if self.native else f'{self.filename}:{self.lineno}'})"


class Stack(NamedTuple):
    """All blocks of one stack of a profile, of one label and thread. In a sampled one amounts are estimates, and
    `error` is the standard error of `live`."""

    frames: tuple[Frame, ...]  # the innermost first
    label: str
    thread: str
    live: float
    error: float
    peak: float
    allocated: float
    blocks: float  # that are live

    @property
    def line(self) -> Frame | None:
        """The innermost one of Python."""
        return next((frame for frame in self.frames if not frame.native), None)


class Verdict(NamedTuple):
    """A stack that grew over the windows of a profile."""

    kind: str  # "leak", "growth" or "filling"
    evidence: str
    bytes_a_window: float
    low: float
    high: float
    freed_share: float
    windows: int
    stack: Stack | None
    kept_share: float = 0.0  # of what lived at the middle, what lives now
    bytes_an_hour: float = 0.0
    low_an_hour: float = 0.0
    high_an_hour: float = 0.0


class Mark(NamedTuple):
    """The beginning of a window of a profile, and what there was then."""

    name: str
    at: float  # seconds after the profile began
    live: int
    committed: int
    resident: int  # of the process; 0: the system does not tell


def stacks_of(context: dict) -> dict[int, Stack]:
    """The stacks in a context of a report, by their ids."""
    frames = [
        Frame(f["function"], f.get("file", ""), f.get("line", 0), f.get("module", ""), f.get("kind") == "native")
        for f in context["frames"]
    ]
    return {
        s["id"]: Stack(
            tuple(frames[n] for n in s["frames"]),
            s["label"],
            s.get("thread", ""),
            s["live_bytes"],
            s["live_bytes_error"],
            s["peak_bytes"],
            s["alloc_bytes"],
            s["live_blocks"],
        )
        for s in context["stacks"]
    }


class Snapshot:
    """What was live at one moment."""

    def __init__(self, report: dict | str | mmap.mmap) -> None:
        self._report = report

    @property
    def report(self) -> dict:
        """Made of text when it is first asked for: until then it takes nothing of what it measures."""
        if not isinstance(self._report, dict):
            self._report = json.loads(self._report[:])
        return self._report

    def __getstate__(self) -> dict:
        return {"_report": self.report}

    @property
    def parts(self) -> dict:
        """What is in the report by names: `stats`, `labels`, `sites` where lines are known, `status`, `pid`..."""
        return _report.parts(self.report)

    @property
    def stats(self) -> dict[str, int]:
        return self.parts["stats"]

    @property
    def _context(self) -> dict:
        return self.report["contexts"][0]

    def _profiled(self) -> dict:
        if "profile" not in self._context:
            raise ValueError("there is no profile in this snapshot")
        return self._context

    def stacks(self, by: str = "live") -> list[Stack]:
        """Of the profile, those with most first: by "live", "peak" or "allocated" bytes. ValueError: there is no
        profile."""
        if by not in ("live", "peak", "allocated"):
            raise ValueError('by is "live", "peak" or "allocated"')
        return sorted(stacks_of(self._profiled()).values(), key=lambda s: -getattr(s, by))

    def marks(self) -> list[Mark]:
        """The windows of the profile, see hakmem.profile.mark: the first one is window 1."""
        context = self._profiled()
        began = context["profile"]["started_ns"]
        return [
            Mark(
                m["name"],
                (m["at_ns"] - began) / 1e9,
                m["live_bytes"],
                m["committed_bytes"],
                m.get("resident_bytes", 0),
            )
            for m in context.get("marks", ())
        ]

    def verdicts(self) -> list[Verdict]:
        """What grew over the windows of the profile, see hakmem.profile.mark; leaks first."""
        stacks = stacks_of(self._profiled())
        found = [
            Verdict(
                v["kind"],
                v["evidence"],
                v["bytes_a_window"],
                v["low"],
                v["high"],
                v["freed_share"],
                v["windows"],
                stacks.get(v["stack"]),
                *(v.get(name, 0.0) for name in ("kept_share", "bytes_an_hour", "low_an_hour", "high_an_hour")),
            )
            for v in self._context.get("verdicts", ())
        ]
        return sorted(found, key=lambda v: ({"leak": 0, "filling": 2}.get(v.kind, 1), -v.bytes_a_window))

    def _groups(self, key_type: str) -> dict[str, tuple[int, int]]:
        groups = _where.groups(self.parts, key_type)
        if groups is None:
            raise ValueError(f"there is nothing by '{key_type}' in this snapshot")
        return groups

    def statistics(self, key_type: str = "label") -> list[Statistic]:
        """The largest first: by "label", or where sites are on by "lineno", "filename" or "function"; by these also
        where there is a profile, as it estimates them, by the innermost Python function."""
        found = [Statistic(key, *amounts) for key, amounts in self._groups(key_type).items()]
        return sorted(found, key=lambda s: (-s.size, s.key))

    def compare_to(self, old_snapshot: Snapshot, key_type: str = "label") -> list[StatisticDiff]:
        """The largest change first; what is gone has size 0."""
        now, old = self._groups(key_type), old_snapshot._groups(key_type)
        found = []
        for key in now.keys() | old.keys():
            size, count = now.get(key, (0, 0))
            old_size, old_count = old.get(key, (0, 0))
            found.append(StatisticDiff(key, size, size - old_size, count, count - old_count))
        return sorted(found, key=lambda s: (-abs(s.size_diff), -s.size, s.key))

    def dump(self, filename: str) -> None:
        """As a report file; `python -m hakmem report` and `diff` read it."""
        with open(filename, "w", encoding="utf-8") as file:
            json.dump(self.report, file)

    @classmethod
    def load(cls, filename: str) -> Snapshot:
        """A file of dump(), or a report of a process."""
        return cls(_report.load(filename))


def take_snapshot() -> Snapshot:
    """What is live now, garbage that is not collected yet included."""
    # Outside of the heap that it tells of: its text would be the first of what grew until the next one.
    text = _hakmem.report().encode()
    kept = mmap.mmap(-1, len(text), flags=mmap.MAP_PRIVATE)
    kept.write(text)
    return Snapshot(kept)
