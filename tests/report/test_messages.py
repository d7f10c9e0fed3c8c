"""What the command says of arguments that it does not take: one line, with what is wrong and what would be right."""

import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import unittest

HAKMEM = os.environ["HAKMEM_COMMAND"]


class Messages(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hakmem-messages-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "r.json"
        self.file.write_text('{"schema": "hakmem-report/1", "process": {"pid": 7}, "contexts": []}\n')

    def told(self, *arguments):
        done = subprocess.run(
            [HAKMEM, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder, timeout=60
        )
        self.assertEqual((done.stdout, done.returncode), ("", 2), arguments)
        return done.stderr

    def test_options(self):
        for arguments, told in (
            (["report", "--al", self.file], "no such option: '--al'"),
            (["report", self.file, "--nosuch=4"], "no such option: '--nosuch=4'"),
            (["report", "-x", self.file], "no such option: '-x'"),
            (["report", "-xh", self.file], "no such option: '-x'"),
            (["report", "--version=3"], "no such option: '--version=3'"),
            (["report", self.file, "-o"], "a value is missing behind '-o'"),
            (["report", self.file, "--top"], "a value is missing behind '--top'"),
            (["report", self.file, "--output="], "--output is the name of a file, not ''"),
            (["report", "--by=life", self.file], "--by is live, peak or alloc, not 'life'"),
            (["--al"], "no such option: '--al'"),
        ):
            self.assertEqual(self.told(*arguments), f"hakmem: {told}; see hakmem --help\n")

    def test_commands(self):
        for name in ("run", "env", "check", "trim"):
            expected = f"hakmem: no such command: '{name}'; for Python programs there is python -m hakmem {name}\n"
            self.assertEqual(self.told(name, "--al"), expected)
            self.assertEqual(self.told(name, "script.py"), expected)
        self.assertEqual(self.told("rep", "--al"), "hakmem: no such command: 'rep'; see hakmem --help\n")
        self.assertTrue(self.told().startswith("usage: hakmem COMMAND"))
        helped = [subprocess.run([HAKMEM, word], capture_output=True, text=True) for word in ("help", "--help", "-h")]
        self.assertEqual({done.returncode for done in helped}, {0})
        self.assertEqual(len({done.stdout for done in helped}), 1)

    def test_how_many_files(self):
        for arguments, told in (
            (["report"], "'report' takes at least 1 file, not 0"),
            (["diff", self.file], "'diff' takes 2 files, not 1"),
            (["diff", *[self.file] * 3], "'diff' takes 2 files, not 3"),
            (["attach"], "'attach' takes one process, socket or file, not 0"),
            (["top", "1", "2"], "'top' takes one process, socket or file, not 2"),
        ):
            self.assertEqual(self.told(*arguments), f"hakmem: {told}; see hakmem --help\n")

    def test_what_is_not_for_a_terminal(self):
        for name in ("html", "pprof"):
            helped = subprocess.run([HAKMEM, "--help"], capture_output=True, text=True).stdout
            if f"  {name} " not in helped:
                continue
            file = self.file
            if name == "pprof":
                stack = '{"id": 1, "frames": [0], "live_bytes": 1, "live_blocks": 1}'
                context = '{"name": "c", "frames": [{"function": "f"}], "stacks": [%s]}' % stack
                file.write_text(file.read_text().replace("[]", f"[{context}]"))
            master, slave = pty.openpty()
            self.addCleanup(os.close, master)
            done = subprocess.run([HAKMEM, name, file], stdout=slave, stderr=subprocess.PIPE, text=True)
            os.close(slave)
            expected = f"hakmem: {name} is not for a terminal: give -o FILE, or send it into a file with >\n"
            self.assertEqual((done.stderr, done.returncode), (expected, 1))
            os.set_blocking(master, False)
            with self.assertRaises(OSError):  # nothing is there
                os.read(master, 1)


if __name__ == "__main__":
    unittest.main()
