"""Snapshots, shaped like those of tracemalloc. A snapshot is a report, and is stored as one."""

from __future__ import annotations

import json
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


class Snapshot:
    """What was live at one moment."""

    def __init__(self, report: dict | str) -> None:
        self._report = report

    @property
    def report(self) -> dict:
        """Made of text when it is first asked for: until then it takes little of what it measures."""
        if isinstance(self._report, str):
            self._report = json.loads(self._report)
        return self._report

    @property
    def parts(self) -> dict:
        """What is in the report by names: `stats`, `labels`, `sites` where lines are known, `status`, `pid`..."""
        return _report.parts(self.report)

    @property
    def stats(self) -> dict[str, int]:
        return self.parts["stats"]

    def _groups(self, key_type: str) -> dict[str, tuple[int, int]]:
        groups = _where.groups(self.parts, key_type)
        if groups is None:
            raise ValueError(f"there is nothing by '{key_type}' in this snapshot")
        return groups

    def statistics(self, key_type: str = "label") -> list[Statistic]:
        """The largest first: by "label", or where sites are on by "lineno", "filename" or "function"."""
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
    return Snapshot(_hakmem.report())
