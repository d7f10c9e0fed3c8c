#!/usr/bin/env python3
"""hakmem top and attach: the view on a terminal and without one, and peers that are silent, broken or strangers."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest

import test_command

COMMAND = os.environ["HAKMEM_COMMAND"]


class Terminal:
    """The command on a terminal of 100 columns and 12 rows."""

    def __init__(self, *arguments, size=(12, 100), program=COMMAND, **variables):
        command = [program, *map(str, arguments)]
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave,
                                        env={**os.environ, "TERM": "xterm", **variables}, start_new_session=True)
        self.slave = slave
        self.text = ""

    def read(self, pattern, seconds=20):
        """What came until the pattern; from then on it is forgotten."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text, re.S)
            if found:
                self.text = self.text[found.end():]
                return found
            if time.monotonic() > end or not select.select([self.master], [], [], 0.5)[0]:
                if time.monotonic() > end:
                    raise AssertionError(f"no {pattern}: {self.text[-2000:]!r}")
                continue
            self.text += os.read(self.master, 65536).decode()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        status = self.process.wait(timeout=10)
        after = termios.tcgetattr(self.slave)
        os.close(self.slave)
        os.close(self.master)
        return status, after == self.before


def report(live, name="main", pid=None, at=1):
    """One context with stacks that hold `live` bytes, by the names of their functions."""
    return {
        "schema": "hakmem-report/1",
        "process": {"command": ["program"], "pid": pid or os.getpid(), "runtime": {"name": "c", "version": ""},
                    "time": 1, "now_ns": at * 10**9, "cpu_seconds": at / 2},
        "memory": {"resident_bytes": 1 << 20},
        "contexts": [{
            "name": name,
            "stats": {"live_bytes": sum(live.values()), "live_blocks": 1, "peak_bytes": 9 << 20, "committed_bytes": 1 << 22},
            "labels": [{"name": "table", "live_bytes": sum(live.values()), "live_blocks": 1}],
            "stacks": [{"id": i + 1, "label": "table", "frames": [i], "live_blocks": 1, "live_bytes": n,
                        "alloc_bytes": n * at, "peak_bytes": (1 << 20) - n} for i, n in enumerate(live.values())],
            "frames": [{"function": f, "kind": "native"} for f in live],
        }],
    }


class Server:
    """Answers each connection with the next of the answers, the last one for ever."""

    def __init__(self, path, *answers, hold=False, trickle=False, delay=0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(8)
        self.answers, self.hold, self.held, self.served = list(answers), hold, [], 0
        self.trickle = trickle  # a byte each half second, and no answer
        self.delay = delay  # seconds, of all answers but the first
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            answer = self.answers[min(self.served, len(self.answers) - 1)]
            self.served += 1
            try:
                while self.trickle:
                    peer.sendall(b" ")
                    time.sleep(0.5)
                if self.served > 1:
                    time.sleep(self.delay)
                peer.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
            except OSError:
                pass
            if self.hold:
                self.held.append(peer)
            else:
                peer.close()


class Case(unittest.TestCase):
    setUp = test_command.Case.setUp
    write = test_command.Case.write

    def hakmem(self, *arguments, status=0):
        done = test_command.hakmem(*arguments, status=status)
        return done.stdout.decode() if status == 0 else done.stderr.decode()


class Once(Case):
    def test_a_file_as_text(self):
        text = self.hakmem("top", self.file)
        self.assertTrue(text.startswith("hakmem: process "))
        self.assertIn("\n        live  since start         peak  allocated/s  label", text)
        self.assertNotIn("\033", text)
        rows = self.hakmem("top", "-n", "1", self.write("b.json", report({"small": 1 << 10, "large": 1 << 20})))
        self.assertEqual(len(rows.splitlines()), 5)
        self.assertRegex(rows.splitlines()[4], r"^ +1\.00 MiB +0 B +table +large$")

    def test_what_a_report_leaves_out_is_not_shown_as_nothing(self):
        bare = report({"a": 4096}) | {"process": {}, "memory": {}}
        head = self.hakmem("top", self.write("b.json", bare)).splitlines()[:2]
        self.assertEqual([line.rstrip() for line in head],
                         ["hakmem: a process", "live 4.00 KiB (+0 B since start), peak 9.00 MiB, committed 4.00 MiB"])
        whole = self.hakmem("top", self.write("b.json", report({"a": 4096}, pid=7))).splitlines()[:2]
        self.assertEqual(whole[0].rstrip(), "hakmem: process 7, c: program")
        self.assertTrue(whole[1].rstrip().endswith(", committed 4.00 MiB, resident 1.00 MiB, CPU 0 %"), whole[1])

    def test_orders(self):
        file = self.write("b.json", report({"small": 1 << 10, "large": 1 << 20}))
        for by, first in (("live", "large"), ("peak", "small"), ("alloc", "large")):
            self.assertTrue(self.hakmem("top", "--by", by, file).splitlines()[4].endswith(first))

    def test_labels_where_there_are_no_stacks(self):
        bare = report({"a": 4096})
        del bare["contexts"][0]["stacks"], bare["contexts"][0]["frames"]
        self.assertRegex(self.hakmem("top", self.write("b.json", bare)).splitlines()[4], r"^ +4\.00 KiB +table *$")

    def test_callers_of_machine_code_and_lines_of_interpreters(self):
        deep = report({"inner": 4096})
        context = deep["contexts"][0]
        context["frames"] += [{"function": f"f{i}", "kind": "native"} for i in range(5)]
        context["stacks"][0]["frames"] = [0, 1, 2, 3]
        self.assertIn("inner < f0 < f1\n", self.hakmem("top", self.write("b.json", deep)))
        context["frames"][2] = {"function": "g", "file": "a.lua", "line": 7, "kind": "interpreter"}
        self.assertIn(" g (a.lua:7)\n", self.hakmem("top", self.write("b.json", deep)))

    def test_no_text_is_cut_within_a_character(self):
        for before in ("", "x"):
            long = report({before + name * 300: 1 for name in "éè"})
            long["process"]["command"] = [before + "é" * 60] * 6
            frames = long["contexts"][0]["frames"]
            frames[1] |= {"file": before + "é" * 300, "line": 1}
            long["contexts"][0]["stacks"][0]["frames"] = [1, 0]
            self.assertIn("é", self.hakmem("top", self.write("b.json", long)))  # it is decoded

    def test_a_socket(self):
        path = self.folder / "socket"
        Server(path, report({"from_socket": 4096}))
        self.assertIn("from_socket", self.hakmem("top", path))
        self.hakmem("attach", path, "-o", self.folder / "c.json")
        self.assertEqual(json.loads((self.folder / "c.json").read_text())["process"]["pid"], os.getpid())

    def test_wrong_arguments(self):
        for arguments, told in (
            (["top"], "'top' takes one process, socket or file, not 0"),
            (["attach", "1", "2"], "'attach' takes one process, socket or file, not 2"),
            (["top", "-i", "0", self.file], "--interval is 0.1 to 3600 seconds, not '0'"),
            (["top", "-i", "1x", self.file], "--interval is 0.1 to 3600 seconds"),
            (["top", "-i", "nan", self.file], "--interval is 0.1 to 3600 seconds"),
        ):
            self.assertIn(told, self.hakmem(*arguments, status=2))

    def test_what_cannot_be_read_is_one_line(self):
        folder = self.folder
        broken = self.write("broken.json", '{"schema": "hakmem-report/1", "proc')
        for what, told in (
            (folder / "absent", "No such file or directory"),
            (broken, "a report that is cut off"),
            ("abc", "abc: neither the number of a process nor a socket or a file"),
            ("0", "0: neither the number of a process nor a socket or a file"),
            (folder, "Is a directory"),
            ("999999999", "there is no process 999999999"),
            (os.getpid(), "does not listen: it was started without a live view (HAKMEM=live=on, --hak-live=on or "),
            ("x" * 5000, "File name too long"),
        ):
            for output in ([], ["-o", folder / "out.json"]):
                lines = self.hakmem("top", what, *output, status=1).splitlines()
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(told, lines[0])
                self.assertEqual([n for n in os.listdir(folder) if "out" in n], [])

    def test_peers_that_are_broken(self):
        for n, (answer, told) in enumerate((
            (b"", "gave no report"),
            (b"\0\xff garbage \033[2J", "not a report of hakmem"),
            (json.dumps(report({"a": 1})).encode()[:-9], "a report that is cut off"),
            ({"schema": "hakmem-report/2"}, "of another version"),
        )):
            path = self.folder / f"socket{n}"
            Server(path, answer)
            lines = self.hakmem("top", path, status=1).splitlines()
            self.assertEqual(len(lines), 1)
            self.assertIn(told, lines[0])
            self.assertNotIn("\033", lines[0])

    def test_peers_that_say_nothing_or_little(self):
        # Both at once: the command waits ten seconds for each.
        begin = time.monotonic()
        commands = []
        for name, how in (("silent", {"hold": True}), ("slow", {"trickle": True})):
            path = self.folder / name
            Server(path, b"", **how)
            commands.append(subprocess.Popen([COMMAND, "top", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for command in commands:
            out, err = command.communicate(timeout=60)
            self.assertEqual((command.returncode, out), (1, b""))
            self.assertIn(b"no answer in 10 seconds", err)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_peer_that_ends_before_it_answers(self):
        path = self.folder / "socket"
        with socket.socket(socket.AF_UNIX) as peer:
            peer.bind(str(path))
            peer.listen()
            command = subprocess.Popen([COMMAND, "top", path], stderr=subprocess.PIPE)
            self.assertTrue(select.select([peer], [], [], 20)[0])
        self.assertEqual(command.communicate(timeout=20)[1].decode(),
                         f"hakmem: {path}: nobody listens: the process has ended\n")

    def test_another_process_in_the_place_of_one(self):
        with subprocess.Popen(["sleep", "60"]) as other:
            folder = f"/tmp/hakmem-{os.geteuid()}"
            os.makedirs(folder, 0o700, exist_ok=True)
            path = f"{folder}/{other.pid}"
            Server(path, report({"a": 1}))
            try:
                self.assertIn("another process has taken this place", self.hakmem("attach", other.pid, status=1))
            finally:
                os.unlink(path)
                other.kill()


class View(Case):
    def start(self, *answers, size=(12, 100), interval="0.1", **variables):
        path = self.folder / "socket"
        self.server = Server(path, *answers)
        terminal = Terminal("top", path, "-i", interval, size=size, **variables)
        self.addCleanup(lambda: terminal.process.poll() is None and (terminal.process.kill(), terminal.process.wait()))
        return terminal

    def test_growth_and_rates(self):
        t = self.start(report({"still": 8192, "grows": 1024}, at=1), report({"still": 8192, "grows": 5 << 10}, at=2))
        t.read(r"\+4\.00 KiB +\S+ KiB +9\.00 KiB  table +grows")
        t.press("q")
        t.read(r"\033\[\?1049l")
        self.assertEqual(t.end(), (0, True))

    def test_clocks_that_jump(self):
        library = os.environ.get("HAKMEM_CLOCK")
        if not library:
            self.skipTest("no library that moves clocks: a sanitizer needs them")
        # The program's own clock stands still, then goes back: there is no rate to be told.
        answers = [report({"grows": 1024 << i}, at=at) for i, at in enumerate((1000, 1000, 3, 5))]
        clock = self.folder / "clock"
        clock.write_text("0 20000000")
        t = self.start(*answers, LD_PRELOAD=library, CLOCK_FILE=str(clock))
        t.read(r"\+1\.00 KiB +\S+ KiB +  table +grows")
        t.read(r"CPU 0 %.*?\+3\.00 KiB +\S+ KiB +  table +grows")
        t.read(r"\+7\.00 KiB +\S+ KiB +\S+ KiB  table +grows")
        # Its own: 100 days are more milliseconds than an int holds.
        for words in ("0 10000000", "still still", "0 20000000", "0 99999999", "0 1"):
            clock.write_text(words)
            served = self.server.served
            end = time.monotonic() + 20
            while self.server.served < served + 2 and words[0] != "s" and time.monotonic() < end:
                time.sleep(0.05)
            self.assertTrue(words[0] == "s" or self.server.served >= served + 2, words)
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_keys(self):
        first = report({"small": 1024, "large": 1 << 20}, at=1)
        second = report({"small": 9 << 10, "large": 1 << 20}, at=2)
        t = self.start(first, second)
        t.read(r"site.*?large.*?small")
        t.press("g")
        t.read(r"site[^s]*?small.*?large")
        t.press("l")
        t.read(r"site[^s]*?large.*?small")
        t.press("p")
        t.read(r"site[^s]*?small.*?large")
        t.press("a")
        t.read(r"site[^s]*?large.*?small")
        t.press("t")
        t.read(r"label +\033\[K\r\n +1\.0\d MiB +\+8.00 KiB +table")
        t.press("\033[B\033[A\033[5~\033[6~x\033")
        t.press(" ")
        t.read("paused")
        served = self.server.served
        time.sleep(0.5)
        self.assertLessEqual(self.server.served, served + 1)
        t.press(" ")
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_the_parts_of_the_memory(self):
        made = report({"f": 1024})
        made["memory"] = {"parts": [
            {"kind": "live", "name": "live: a", "bytes": 1 << 20, "hint": "hint a"},
            {"kind": "live", "name": "live: b", "bytes": 1 << 20, "hint": "hint b"},
            {"kind": "stacks", "name": "stacks of threads (2)", "bytes": 2 << 20, "hint": "fewer"},
        ]}
        t = self.start(made)
        t.read(r"live 2\.00 MiB, stacks 2\.00 MiB\033\[K\r\n.*?site")
        t.press("m")
        t.read(r"part.*?1\.00 MiB +25\.0 % +live: a +hint a.*?2\.00 MiB +50\.0 % +stacks of threads \(2\) +fewer")
        t.press("m")
        t.read(r"site")
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def with_windows(self, marks):
        """`grows` holds another MiB at each mark, a minute apart; `still` begins with the second one."""
        made = report({"grows": 5 << 20, "still": 3 << 20, "tiny": 1}, at=60 * (marks + 1))
        for stack in made["contexts"][0]["stacks"]:
            stack["peak_bytes"] = stack["live_bytes"]
        made["contexts"][0] |= {
            "marks": [{"name": "", "at_ns": 60 * (i + 1) * 10**9} for i in range(marks)],
            "histories": [
                {"stack": 1, "live": [i << 20 for i in range(marks)]},
                {"stack": 2, "live": [0] + [3 << 20] * (marks - 1)},
            ],
        }
        return made

    def test_windows(self):
        made = self.with_windows(4)
        t = self.start(made)
        t.read(r"site")
        t.press("w")
        head, grows, still, tiny = t.read(r"\r\n( +-4 min +-3 min.*?)\033\[K\r\n(.*?)\033\[K\r\n(.*?)\033\[K\r\n(.*?)\033\[K\r\n").groups()
        self.assertEqual(re.split(r"  +", head.strip()), ["-4 min", "-3 min", "-2 min", "-60 s", "now", "label", "site"])
        self.assertEqual(re.split(r"  +", grows.strip()), ["1.00 MiB", "2.00 MiB", "3.00 MiB", "5.00 MiB", "table", "grows"])
        self.assertEqual(re.split(r"  +", still.strip()), ["3.00 MiB", "3.00 MiB", "3.00 MiB", "3.00 MiB", "table", "still"])
        self.assertEqual(re.split(r"  +", tiny.strip()), ["1 B", "table", "tiny"])
        t.press("g")
        t.read(r"-4 min")
        t.press("w")
        t.read(r"since start")
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_many_windows_fit_a_screen(self):
        made = self.with_windows(32)
        self.start(made)
        for columns, count in ((100, 4), (60, 1), (500, 8)):
            t = Terminal("top", self.folder / "socket", "-i", "0.1", size=(12, columns))
            t.press("w")
            head = t.read(r"\r\n( +-[\d]+ [^\r]*? now [^\r]*?)\033\[K\r\n")[1]
            self.assertLessEqual(len(head), columns)
            ages = re.findall(r"-\d+ (?:s|min)", head)
            self.assertEqual(len(ages), count, head)
            self.assertEqual(ages[-1], "-60 s", "the last one is there")
            if count > 1:
                self.assertEqual(ages[0], "-32 min", "and the first one")
            t.press("q")
            self.assertEqual(t.end(), (0, True))

    def test_windows_as_text(self):
        path = self.folder / "r.json"
        path.write_text(json.dumps(self.with_windows(3)))
        text = test_command.hakmem("top", "--windows", path).stdout.decode()
        self.assertRegex(text, r"\n +-3 min +-2 min +-60 s +now  label +site\n +1\.00 MiB +2\.00 MiB +5\.00 MiB  table +grows\n")
        path.write_text(json.dumps(report({"f": 1024})))
        text = test_command.hakmem("top", "-w", path).stdout.decode()
        self.assertIn("\nno windows: there is no profile, its first window goes on, or its windows are off\n", text)
        error = test_command.hakmem("report", "-w", path, status=2).stderr.decode()
        self.assertEqual(error, "hakmem: --windows is an option of the views attach and top, not of 'report'; see hakmem --help\n")
        error = test_command.hakmem("attach", "-w", "-o", self.folder / "x", path, status=2).stderr.decode()
        self.assertEqual(error, "hakmem: --windows is an option of the views attach and top, not of '--output'; see hakmem --help\n")

    def test_scrolling(self):
        t = self.start(report({f"f{i:02}": 1 << 20 >> i // 2 for i in range(20)}))
        shown = t.read(r"site(.*?)\033\[J")[1]
        self.assertEqual(re.findall(r"f\d\d", shown), [f"f{i:02}" for i in range(7)])
        t.press("\033[B")
        t.read(r"site[^f]*?f01.*?f07")
        t.press("\033[6~")
        t.read(r"site[^f]*?f08.*?f14")
        t.press("\033[6~")
        t.read(r"site[^f]*?f13.*?f19")
        t.press("\033[5~")
        t.read(r"site[^f]*?f06")
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_lines_fit_the_terminal(self):
        t = self.start(report({"x" * 300: 1024, "\u00e9" * 300: 1025}), size=(8, 60))
        shown = t.read(r"\033\[H(.*?)\033\[J")[1]
        for line in shown.split("\r\n"):
            self.assertLessEqual(len(line.replace("\033[K", "")), 60)
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_a_process_that_ends(self):
        t = self.start(report({"f": 1024}))
        t.read("1.00 KiB")
        self.server.socket.shutdown(socket.SHUT_RDWR)
        self.server.socket.close()
        t.read("nobody listens: the process has ended")
        t.read(r" f\b")  # the last view stays
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            t = Terminal("top", self.file)
            t.read("site")
            os.kill(t.process.pid, number)
            t.read(r"\033\[\?25h\033\[\?1049l")
            self.assertEqual(t.end(), (128 + number, True))

    def test_a_window_that_changes_while_a_process_answers(self):
        path = self.folder / "socket"
        answers = [report({"f": 1024 << i}, at=i) for i in range(3)]
        server = Server(path, *answers, delay=1)
        t = Terminal("top", path, "-i", "0.1")
        self.addCleanup(t.process.kill)
        t.read("1.00 KiB")
        for columns in (90, 80, 70):
            while server.served < 2:
                time.sleep(0.01)
            fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, columns, 0, 0))
            os.kill(t.process.pid, signal.SIGWINCH)
            time.sleep(0.1)
        shown = t.read(r"(.*?)\+3\.00 KiB")[1]
        self.assertNotIn("answer", shown)
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_a_stop_leaves_the_terminal_as_it_was(self):
        # What is opened first is the terminal of the session, without which a shell would stop nothing.
        shell = 'exec <"$(tty)"; set -m; "$0" top "$1"; echo stopped; read line; fg'
        t = Terminal("-c", shell, COMMAND, self.file, program="sh")
        self.addCleanup(t.process.kill)
        t.read("site")
        t.press("\x1a")
        t.read(r"\033\[\?25h\033\[\?1049l.*stopped")
        self.assertEqual(termios.tcgetattr(t.slave)[3], t.before[3])
        t.press("\n")
        t.read(r"\033\[\?1049h.*site")
        self.assertFalse(termios.tcgetattr(t.slave)[3] & termios.ICANON)
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_a_stop_that_nobody_sees(self):
        t = Terminal("top", self.file)
        self.addCleanup(t.process.kill)
        t.read("site")
        os.kill(t.process.pid, signal.SIGSTOP)
        termios.tcsetattr(t.slave, termios.TCSANOW, t.before)
        os.kill(t.process.pid, signal.SIGCONT)
        t.read(r"\033\[\?1049h.*site")
        t.press("q")
        self.assertEqual(t.end(), (0, True))

    def test_names_cannot_command_the_terminal(self):
        evil = report({"a\033[2Jb\x9b": 1024}, name="n\033]0;x\007")
        evil["process"]["command"] = ["c\033[31m"]
        text = self.hakmem("top", self.write("b.json", evil))
        self.assertNotRegex(text, "[\033\007\x9b]")


if __name__ == "__main__":
    unittest.main()
