"""What the package offers; loaded when a program first asks for any of it, see __init__.py."""

from hakmem import profile
from hakmem._api import (
    Site,
    census,
    get_traced_memory,
    install,
    labels,
    limit,
    live,
    reset_peak,
    resident,
    site_of,
    stats,
    status,
    trim,
)
from hakmem._hakmem import VERSION as __version__
from hakmem._label import label
from hakmem._snapshot import Snapshot, Stack, Statistic, StatisticDiff, Verdict, take_snapshot

__all__ = [
    "Site",
    "Snapshot",
    "Stack",
    "Statistic",
    "StatisticDiff",
    "Verdict",
    "__version__",
    "census",
    "get_traced_memory",
    "install",
    "label",
    "labels",
    "limit",
    "live",
    "profile",
    "reset_peak",
    "resident",
    "site_of",
    "stats",
    "status",
    "take_snapshot",
    "trim",
]
