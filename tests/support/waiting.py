"""Waiting for what a test needs, however slow the machine is."""

import fcntl
import struct
import termios
import time


def until(condition, what="nothing came", seconds=60):
    """What the condition gives, once that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(what)


def until_it_reads(process):
    """Until the process has read all of its standard input, a pipe, and sleeps for more."""

    def reads():
        if struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)))[0]:
            return False
        with open(f"/proc/{process.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "S"

    until(reads, "the process does not wait for input")
