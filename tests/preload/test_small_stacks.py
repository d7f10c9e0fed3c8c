"""Threads with the smallest stack that there is (16 KiB), under every setting: calls of all kinds, reports of
misuse and of faults, a signal that asks for a profile."""

import os
import signal
import unittest

from shim import HELPERS, Case

PROGRAM = os.path.join(HELPERS, "preload_small_stack")
ALL = "canary=on,quarantine=on,trace=1000,guard=5,profile={0}/p,rate=1K,signal=USR2,live=on,learn={0}/l"
SETTINGS = (
    "",
    "mode=fast",
    "limit=64M",
    "reserve=4M",
    "profile={0}/p,rate=1K,signal=USR2",
    "profile={0}/p,rate=exact",
    "guard=1",
    "check=report",
    ALL,
)


class SmallStacks(Case):
    def stack(self, what, settings):
        # Without a setting for it the signal would end the process.
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        try:
            return self.start([PROGRAM, what], settings.format(self.dir))
        finally:
            signal.signal(signal.SIGUSR2, signal.SIG_DFL)

    def touched(self, what, settings):
        done = self.stack(what, settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        least, most, size = map(int, done.stdout.split())
        self.assertTrue(0 < least <= most < size, done.stdout)
        if os.environ.get("STACKS"):  # for the figures in docs/guide/preload.md
            print(f"{what} {settings}: {most} of {size}, {least} by a thread that does nothing")
        return done.stderr, most, size

    def test_calls(self):
        for settings in SETTINGS:
            with self.subTest(settings):
                errors, most, size = self.touched("calls", settings)
                self.assertEqual(errors, "")
                self.assertLess(most, size - 3000)

    def test_reports_of_misuse(self):
        for settings in ("check=report", "trace=1000", ALL):
            with self.subTest(settings):
                errors, *_ = self.touched("misuse", settings)
                for name in ("HAK_E_DOUBLE_FREE", "HAK_E_FOREIGN", "HAK_E_POINTER"):
                    self.assertEqual(errors.count(name), 1, errors)

    def test_the_report_of_a_fault(self):
        done = self.stack("fault", "guard=1")
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        self.assertRegex(done.stderr, r"use after free at .*, 0 bytes into a block of 1000 bytes")
        self.assertRegex(
            done.stderr, r"(?s)  allocated by thread \d+: frames .*  freed by thread \d+: frames "
        )


if __name__ == "__main__":
    unittest.main()
