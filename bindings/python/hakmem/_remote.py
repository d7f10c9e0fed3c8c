"""Requests to running programs: to give memory back, and for a report."""

import contextlib
import os
import re
import secrets
import stat
import time

from hakmem import _hakmem, _report

TRIM, REPORT = 1, 2  # hkp_wish
# How long a program may take to reach a place where it can trim, and how long its memory must stay as it is.
PATIENCE, CALM = 10.0, 0.3
# How long an attempt to write a report may take (patience in requests.c), twice: in the handler, and in the main
# thread; and the program to begin with it.
ATTEMPTS, MORE = (*4 * (0.25,), *3 * (1.0,), 10.0), 1.0
STEP = 0.02


def listening(pid):
    """The signal to which the program listens. ValueError: to none; any would be for another handler, or end
    it."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        found = re.search(rf"/memfd:{_hakmem.MARKER}([0-9]+)", file.read())
    if not found:
        raise ValueError(
            "not a program that was started under hakmem, or not ready yet, or it uses the signal itself"
        )
    return int(found[1])


def ask(pid, wish, attempt=0, name=0):
    _hakmem.request(pid, listening(pid), wish, attempt, name)


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def trim(pid):
    """Resident bytes before and after."""
    before = resident(pid)
    ask(pid, TRIM)
    last, since, end = before, time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(CALM / 10)
        now = resident(pid)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > CALM:
            break
    return before, last


def user(pid):
    """Whose files are those that the program makes."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[4]) for line in file if line.startswith("Uid:"))


def opener(pid):
    """Opens the file that the program wrote, and nothing else: anybody can write where it is."""
    owner = user(pid)

    def opens(path, flags):
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_uid == owner:
            return fd
        os.close(fd)
        raise ValueError("another program has taken this place")

    return opens


def report(pid):
    """The report of a running program, which waits until it is written."""
    opens = opener(pid)
    files = []
    try:
        return answer(pid, opens, files)
    finally:
        # Of an attempt that was given up, and was done a moment later.
        for file in files:
            with contextlib.suppress(OSError):
                os.unlink(file)


def answer(pid, opens, files):
    for attempt, patience in enumerate(ATTEMPTS):
        name = secrets.randbits(39)
        # What the program calls /tmp: it may be in a container.
        file = f"/proc/{pid}/root/tmp/hakmem-{name:010x}.json"
        files.append(file)
        ask(pid, REPORT, attempt, name)
        end = time.monotonic() + 2 * patience + MORE
        while time.monotonic() < end:
            time.sleep(STEP)
            if os.path.lexists(file):
                try:
                    return _report.load(file, opens)
                except OSError as error:
                    raise ValueError(f"{file}: {error.strerror}") from None
    raise ValueError("it was asked for a report, and gave none")
