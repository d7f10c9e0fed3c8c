"""Exact memory accounts, limits and trimming for CPython."""

from hakmem._api import get_traced_memory, install, labels, limit, resident, stats, status, trim
from hakmem._label import label
from hakmem._snapshot import Snapshot, Statistic, StatisticDiff, take_snapshot

__all__ = [
    "Snapshot",
    "Statistic",
    "StatisticDiff",
    "get_traced_memory",
    "install",
    "label",
    "labels",
    "limit",
    "resident",
    "stats",
    "status",
    "take_snapshot",
    "trim",
]
