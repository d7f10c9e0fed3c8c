#!/usr/bin/env python3
"""Where hakmem writes with -o: files that are whole or not there, links, modes, streams that are open."""

import os
import stat
import subprocess
import unittest

from test_command import COMMAND, Case, hakmem


class Output(Case):
    def setUp(self):
        super().setUp()
        self.wanted = self.text("report", self.file)

    def mode(self, path):
        return stat.S_IMODE(path.stat().st_mode)

    def test_streams_that_are_open(self):
        # /dev/stdout last: who would put a file in its place fails before.
        for name, number in (("/dev/fd/3", 3), ("/dev/fd/1", 1), ("/proc/self/fd/1", 1), ("/dev/stdout", 1)):
            if not os.path.exists("/dev/fd/0"):
                self.skipTest("no /dev/fd")
            path = self.write("stream", "before\n")
            with open(path, "a") as out:
                command = [COMMAND, "report", "-o", name, self.file]
                if number == 3:
                    command = ["sh", "-c", f'exec "$@" 3>&{out.fileno()}', "sh", *command]
                done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, pass_fds=[out.fileno()])
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)
            self.assertEqual(path.read_text(), "before\n" + self.wanted)
            self.assertEqual(os.path.islink("/dev/stdout"), True)

    def test_pipes(self):
        self.assertEqual(self.text("report", "-o", "/dev/fd/1", self.file), self.wanted)

    def test_a_named_pipe_is_waited_for(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([COMMAND, "report", "-o", pipe, self.file], stderr=subprocess.PIPE) as command:
            with self.assertRaises(subprocess.TimeoutExpired):
                command.wait(0.3)
            self.assertEqual((pipe.read_text(), command.stderr.read()), (self.wanted, b""))
            self.assertEqual(command.wait(20), 0)

    def test_links_are_followed(self):
        target, link, second = self.write("target", "old"), self.folder / "link", self.folder / "second"
        link.symlink_to("target")
        second.symlink_to(link)
        for name in (link, second):
            target.write_text("old")
            hakmem("report", "-o", name, self.file)
            self.assertTrue(name.is_symlink())
            self.assertEqual(target.read_text(), self.wanted)
        target.unlink()
        hakmem("report", "-o", link, self.file)
        self.assertEqual(target.read_text(), self.wanted)

    def test_modes(self):
        new, private, shared = self.folder / "new", self.write("private", ""), self.write("shared", "")
        private.chmod(0o600)
        shared.chmod(0o666)
        before = os.umask(0o027)
        try:
            for path, mode in ((new, 0o640), (private, 0o600), (shared, 0o666)):
                hakmem("report", "-o", path, self.file)
                self.assertEqual((self.mode(path), path.read_text()), (mode, self.wanted))
        finally:
            os.umask(before)

    def test_a_file_that_may_not_be_written(self):
        path = self.write("there", "as it was")
        path.chmod(0o400)
        if os.access(path, os.W_OK):
            self.skipTest("root may write everything")
        self.assertIn(b"Permission denied", hakmem("report", "-o", path, self.file, status=1).stderr)
        self.assertEqual(path.read_text(), "as it was")

    def test_what_a_process_says(self):
        private = self.write("private", "")
        private.chmod(0o600)
        hakmem("attach", self.file, "-o", private)
        self.assertEqual((self.mode(private), private.read_bytes()), (0o600, self.file.read_bytes()))
        hakmem("attach", self.folder / "none", "-o", private, status=1)
        self.assertEqual(private.read_bytes(), self.file.read_bytes())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.json", "private"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
