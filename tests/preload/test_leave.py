"""main that leaves by pthread_exit: the process ends with the program's last thread, whatever the shim's do."""

import os
import signal
import subprocess

from shim import HELPERS, Case, main, reports, until

PROGRAM = os.path.join(HELPERS, "preload_leave")


class Leave(Case):
    def settings(self):
        profile, learned, sock = self.path("profile"), self.path("learned"), self.path("socket")
        return (
            "trim=1",
            "trim=86400",
            f"live={sock}",
            f"profile={profile},signal=USR1",
            f"learn={learned}",
            f"trim=1,live={sock},profile={profile},signal=USR1,learn={learned}",
        )

    def test_it_ends_with_the_last_thread(self):
        for settings in self.settings():
            for what, expected in (
                ("alone", "at exit\n"),
                ("at-once", "worked\nat exit\n"),
                ("late", "worked\nat exit\n"),
                ("joined", "joined\nat exit\n"),
            ):
                with self.subTest(settings=settings, what=what):
                    self.assertEqual(self.start([PROGRAM, what]).stdout, expected)
                    done = self.start([PROGRAM, what], settings + ",report=stderr")
                    self.assertEqual((done.stdout, done.returncode), (expected, 0))
                    self.assertEqual(len(reports(done.stderr)), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("socket")))
        self.assertTrue(os.path.exists(self.path("profile")))

    def test_signals_reach_the_threads_that_are_left(self):
        for settings in self.settings():
            with self.subTest(settings=settings):
                process = subprocess.Popen([PROGRAM, "forever"], env=self.environment(settings), cwd=self.dir)
                self.addCleanup(process.kill)

                def left():
                    with open(f"/proc/{process.pid}/stat") as file:
                        return file.read().rsplit(")", 1)[1].split()[0] == "Z"

                until(left, "main does not leave")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(30), -signal.SIGTERM)


if __name__ == "__main__":
    main()
