"""Profiles of memory by stacks of Python lines: hakmem.profile.start(), ..., hakmem.profile.snapshot().stacks().

What is live and who allocated it, in windows that mark() begins; what grows over them. How stacks are taken, and
what they cost, is in docs/guide/python-profile.md."""

from __future__ import annotations

import atexit
import contextlib
import json
from collections.abc import Iterator

from hakmem import _hakmem
from hakmem._snapshot import Mark, Snapshot, Stack, Verdict, stacks_of, take_snapshot

__all__ = [
    "Mark", "Snapshot", "Stack", "Verdict", "diff", "mark", "marks", "over", "reset", "running", "snapshot", "start",
    "stop", "verdicts",
]  # fmt: skip

_registered = False


def _bytes(value: int | str | None) -> int:
    if value is None:
        return 0
    size = _hakmem.parse_size(value.replace(" ", "")) if isinstance(value, str) else value
    if size < 0:
        raise ValueError(f"{value!r} is no size")
    return size


def start(
    mode: str = "sampled",
    *,
    mean: int | str | None = None,
    depth: int = 0,
    table: int | str | None = None,
    seed: int = 0,
    window: float = 0,
) -> None:
    """Begins a profile; what an earlier one left is forgotten, and blocks that are live already are not in it.

    mode: "sampled", or "exact", every block. mean: bytes to a sample on average (512 KiB). depth: most Python
    functions of a stack (64, at most 100). table: most that it takes (16 MiB, exact 1 GiB). seed: the same seed
    draws the same bytes. window: seconds after which a window begins by itself, until mark() is called; 0 = none does.
    RuntimeError: a profile runs, or hakmem is not installed."""
    global _registered
    if mode not in ("sampled", "exact"):
        raise ValueError('mode is "sampled" or "exact"')
    if not 0 <= depth <= 100:
        raise ValueError("depth is at most 100")
    if not (window == 0 or 0.001 <= window <= 365 * 86400):
        raise ValueError("window is seconds, 0.001 to 31536000, or 0")
    _hakmem.profile_start(mode == "exact", _bytes(mean), depth, _bytes(table), seed, round(window * 1e9))
    if not _registered:
        _registered = True
        # Threads that still run when Python is gone have no frames to read.
        atexit.register(_hakmem.profile_end)


def stop() -> None:
    """No more samples; what there is stays, and frees are still counted. RuntimeError: none runs."""
    _hakmem.profile_stop()


def reset() -> None:
    """Forgets everything, marks too; a profile that runs goes on. RuntimeError: there is none."""
    _hakmem.profile_reset()


def running() -> bool:
    """Whether a profile runs."""
    return bool(_hakmem.profile_running())


def mark(name: str = "") -> int:
    """Begins a window; its number, from 1. After 5 of about the same work each, verdicts() tells what grew.
    RuntimeError: there is no profile. MemoryError: no room in its table."""
    return _hakmem.profile_mark(name)


def diff(begin: int, end: int | None = None) -> list[Stack]:
    """What changed from the beginning of window `begin` to that of window `end`, or until now; 0 is the start of the
    profile. A stack's `live`, `allocated` and `blocks` are differences, `live` and `blocks` may be negative, and
    `peak` is 0; those that grew most come first. ValueError: there are no such windows. RuntimeError: there is no
    profile."""
    if end is not None and end < 0:
        raise ValueError(f"there is no window {end}")
    found = stacks_of(json.loads(_hakmem.profile_diff(begin, -1 if end is None else end)))
    return sorted(found.values(), key=lambda s: (-s.live, -s.allocated))


def marks() -> list[Mark]:
    """The windows so far: snapshot().marks()."""
    return snapshot().marks()


def verdicts() -> list[Verdict]:
    """What grew over the windows so far, leaks first: snapshot().verdicts()."""
    return snapshot().verdicts()


def snapshot() -> Snapshot:
    """What is there now: hakmem.take_snapshot(). RuntimeError: there is no profile."""
    if _hakmem.profile_running() is None:
        raise RuntimeError("there is no profile")
    return take_snapshot()


@contextlib.contextmanager
def over(mode: str = "exact", **options: int | str) -> Iterator[None]:
    """A profile of a block of code: `with hakmem.profile.over(): ...`, then snapshot()."""
    start(mode, **options)  # type: ignore[arg-type]
    try:
        yield
    finally:
        stop()
