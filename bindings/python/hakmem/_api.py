"""What a program asks of hakmem."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import NamedTuple, TypedDict

from hakmem import _hakmem, _launch

_MODES = ("replace", "wrap", "auto")
_DOMAINS = ("raw", "all")


class Status(TypedDict):
    """Of each domain: "default", "replaced", "wrapped", "covered" (another hook is on top and passes on to
    hakmem) or "displaced" (another allocator took its place). mixed: the kinds of objects (`set`) that have the
    label of another kind in this interpreter, with that label; empty where labels tell kinds apart."""

    raw: str
    mem: str
    obj: str
    arena: str
    installed: bool
    early: bool
    labels: str
    why: str
    holder: dict[str, str]
    mixed: dict[str, str]


class Stats(TypedDict):
    """Bytes, as in hak_stats of hakmem.h, and the resident memory of the process."""

    live_bytes: int
    live_blocks: int
    peak_bytes: int
    committed_bytes: int
    metadata_bytes: int
    cached_bytes: int
    released_bytes: int
    reserved_bytes: int
    retained_bytes: int
    big_bytes: int
    big_blocks: int
    soft_limit: int
    hard_limit: int
    failures: int
    os_calls: int
    resident_bytes: int


def install(domains: str = "raw", mode: str = "replace", labels: str = "off") -> Status:
    """Puts hakmem into the running interpreter, for what is allocated from now on.

    domains: "raw" (RAW and pymalloc's arenas) or "all" (RAW, MEM and OBJ). mode: "replace" is refused while
    another allocator is active (tracemalloc, memray, debug hooks), "wrap" only counts calls, "auto" replaces
    where that is allowed and wraps elsewhere. labels: "off" (by domain), "native" or "site".
    RuntimeError: refused, and why. Python cannot be rid of hakmem again: blocks live on."""
    if domains not in _DOMAINS or mode not in _MODES:
        raise ValueError(f"domains is one of {', '.join(_DOMAINS)}, mode one of {', '.join(_MODES)}")
    if not _hakmem.install(domains == "all", _MODES.index(mode), labels):
        raise RuntimeError(_hakmem.status()["why"])
    return _hakmem.status()


def status() -> Status:
    """Whether hakmem is in, in which domains, and who is there instead."""
    return _hakmem.status()


def serves(*domains: str) -> bool:
    """Whether blocks of one of the domains come from hakmem's heap, maybe through a hook on top."""
    now = _hakmem.status()
    return any(now[domain] in ("replaced", "covered") for domain in domains)


def stats() -> Stats:
    """The accounts of the whole heap."""
    return _hakmem.stats()


def labels() -> dict[str, tuple[int, int]]:
    """Live bytes and live blocks of each label; they sum to those of stats()."""
    return _hakmem.labels()


def resident() -> str:
    """Where the resident memory of the process is: its parts, a line each, that sum to it."""
    return _hakmem.resident()


def get_traced_memory() -> tuple[int, int]:
    """Live bytes now, and the highest so far or since reset_peak()."""
    now = _hakmem.stats()
    return now["live_bytes"], now["peak_bytes"]


def reset_peak() -> None:
    """From now on the peak is the highest since this call."""
    _hakmem.reset_peak()


def live(place: str = "on") -> None:
    """From now on `hakmem attach` and `hakmem top` show this process, to its owner and to root: by its number, or
    at the socket `place`. Children of fork that go on as a Python have a socket of their own, unless `place` is a
    path without %p. ValueError: a text that is neither "on" nor a path with a slash. RuntimeError: why there is none,
    or that there is one already."""
    wrong = isinstance(place, str) and _launch.live_wrong(place, off=False)
    if wrong:
        raise ValueError(f"live: {place!r}: {wrong}")
    wrong = _hakmem.live(place if place == "on" else os.path.abspath(place))
    if wrong:
        raise RuntimeError(wrong)
    os.register_at_fork(
        before=_hakmem.live_before_fork,
        after_in_parent=_hakmem.live_after_fork,
        after_in_child=_hakmem.live_in_child,
    )


def trim() -> int:
    """Gives unused memory back to the system, pages between live blocks included. Returns the bytes."""
    return _hakmem.trim()


def collect_and_trim() -> None:
    """What a soft limit does unless the program says otherwise."""
    gc.collect()
    _hakmem.trim()


def limit(
    hard: int | None, *, soft: int | None = None, soft_callback: Callable[[], object] | None = None
) -> None:
    """Past `hard` committed bytes an allocation raises MemoryError; None or 0 = no limit.

    When `soft` is crossed upwards (default: 4/5 of hard, if there is a callback), soft_callback() runs soon
    in the main thread; without one, unreachable objects are collected and memory is trimmed.
    RuntimeError: hakmem serves no domain of this process, so that nothing would be limited."""
    if soft_callback is not None and not callable(soft_callback):
        raise TypeError("soft_callback is called without arguments; this is no function")
    if hard is None:
        hard = 0
    if soft is None:
        soft = hard // 5 * 4 if soft_callback else 0
    if (hard or soft) and not serves("raw", "mem", "obj"):
        raise RuntimeError(
            "a limit without effect: hakmem serves no domain of this process; see hakmem.status()"
        )
    callback = (soft_callback or collect_and_trim) if soft else None
    _hakmem.limit(soft, hard, callback)


def census(top: int | None = None) -> dict[type | None, tuple[int, int]]:
    """Live objects by type: how many, and the bytes of their blocks, the largest first. None: blocks that
    are no objects (items of lists, tables of dictionaries, text of C code). No Python code runs meanwhile.
    RuntimeError: objects are not hakmem's."""
    if not serves("obj"):
        raise RuntimeError("the census needs all domains (--all, domains='all'); see hakmem.status()")
    found = sorted(_hakmem.census().items(), key=lambda item: -item[1][1])
    return dict(found[:top])


class Site(NamedTuple):
    """The line of Python code that asked for a block, the size of the block and what was asked for."""

    filename: str
    function: str
    lineno: int
    size: int
    asked: int


def site_of(obj: object) -> Site | None:
    """Where an object was made (labels="site"); None if that is not known."""
    found = _hakmem.site_of(obj)
    return Site(*found) if found else None
