#!/usr/bin/env python3
"""hakmem serve: what it answers, to whom, and clients and processes that are slow, silent, hostile or gone."""

import concurrent.futures
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest
from pathlib import Path

import test_command
import test_top

COMMAND = test_command.COMMAND


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


class Case(test_command.Case):
    def serve(self, *arguments, place="127.0.0.1:0", user=None):
        """Starts the command, and returns it when it listens; self.port is where."""
        command = COMMAND
        if user is not None:  # who may not come to the tree, perhaps
            os.chmod(self.folder, 0o755)
            command = os.path.join(self.folder, "hakmem")
            if not os.path.exists(command):
                shutil.copy(COMMAND, command)
        process = subprocess.Popen([command, "serve", "--listen", place, *map(str, arguments)],
                                   stderr=subprocess.PIPE, text=True, user=user)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.said = process.stderr.readline()
        self.assertRegex(self.said, "^hakmem: at ")
        found = re.search(r":(\d+)/", self.said)
        self.port = int(found[1]) if found else None
        return process

    def ask(self, path, method="GET", connection=None, body=None, **headers):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            c.request(method, path, body=body, headers=headers)
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            c.close()

    def get(self, path, **headers):
        status, _, body = self.ask(path, **headers)
        self.assertEqual(status, 200, body[:200])
        return body

    def another(self, live, name="other", pid=99):
        return self.write(f"{pid}.json", json.dumps(test_top.report({"f": live}, name=name, pid=pid)))


# A process that listens as one with hakmem does, in the folder that is its first argument.
LISTENS = """
import os, socket, sys
place = os.path.join(sys.argv[1], str(os.getpid()))
s = socket.socket(socket.AF_UNIX)
s.bind(place)
os.chmod(place, 0o666)
s.listen(8)
print(flush=True)
report = sys.stdin.readline().replace("4242", str(os.getpid())).encode()
while True:
    c, _ = s.accept()
    c.sendall(report)
    c.close()
"""


class Folders(Case):
    @unittest.skipIf(os.geteuid() != 0, "only root can be two others")
    @unittest.skipUnless(os.path.exists("/usr/bin/python3"), "no /usr/bin/python3, which others may run")
    def test_a_folder_that_another_made_has_no_processes(self):
        user, other = 65531, 65532
        folder = Path(f"/tmp/hakmem-{user}")
        for owner, mode, status in ((other, 0o755, 503), (user, 0o777, 503), (user, 0o700, 200)):
            folder.mkdir()
            self.addCleanup(subprocess.run, ["rm", "-rf", str(folder)], check=True)
            folder.chmod(mode)
            os.chown(folder, owner, owner)
            process = subprocess.Popen(["/usr/bin/python3", "-c", LISTENS, str(folder)], user=owner, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for file in (process.stdin, process.stdout):
                self.addCleanup(file.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            process.stdout.readline()
            process.stdin.write(json.dumps(test_top.report({"f": 1000}, pid=4242)) + "\n")
            process.stdin.flush()
            self.serve(user=user)
            self.assertEqual(self.ask("/")[0], status, (owner, oct(mode)))
            subprocess.run(["rm", "-rf", str(folder)], check=True)


class Answers(Case):
    def test_metrics_are_those_of_the_command(self):
        self.serve(self.file)
        status, headers, body = self.ask("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertEqual(body.decode(), self.text("prometheus", self.file))

    def test_open_metrics_for_who_asks_for_them(self):
        self.serve(self.file)
        status, headers, body = self.ask("/metrics", Accept="application/openmetrics-text;version=1.0.0,*/*;q=0.1")
        self.assertRegex(headers["Content-Type"], "^application/openmetrics-text; version=1.0.0")
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("prometheus-client is not there")
        families = {f.name: f for f in text_string_to_metric_families(body.decode())}
        self.assertEqual(families["hakmem_failures"].type, "counter")
        classic = self.get("/metrics").decode()
        self.assertEqual([line for line in body.decode().splitlines() if line[0] != "#"],
                         [line for line in classic.splitlines() if line[0] != "#"])

    def test_profiles(self):
        self.serve(self.file)
        for path, by in (("heap", "live"), ("allocs", "alloc")):
            body = self.get(f"/debug/pprof/{path}")
            wanted = self.folder / by
            self.text("pprof", "-b", by, "-o", wanted, self.file)
            self.assertEqual(gzip.decompress(body), gzip.decompress(wanted.read_bytes()))
        self.assertNotEqual(gzip.decompress(self.get("/debug/pprof/heap")), gzip.decompress(body))

    def test_a_report_without_stacks_has_no_profile(self):
        self.serve(self.write("bare.json", json.dumps({**self.report, "contexts": []})))
        status, _, body = self.ask("/debug/pprof/heap")
        self.assertEqual((status, body.decode().count("\n")), (404, 1))
        self.assertIn(b"no profile was taken", body)

    def test_the_report_and_its_page(self):
        self.serve(self.file)
        self.assertEqual(self.get("/report.json"), self.file.read_bytes())
        self.assertIn(b"hakmem", self.get("/"))

    def test_several_processes(self):
        pid = int(self.report["process"]["pid"])
        self.serve(self.file, self.another(4321))
        page = self.get("/").decode()
        self.assertIn(f'<a href="/{pid}/">', page)
        self.assertIn('<a href="/99/">', page)
        self.assertRegex(self.get("/metrics").decode(), r'hakmem_live_bytes\{pid="99",context="other"\} 4321\n')
        self.assertNotIn(f'pid="{pid}"', self.get("/99/metrics").decode())
        self.assertEqual(self.get(f"/{pid}/report.json"), self.file.read_bytes())
        self.assertEqual(self.ask("/report.json")[0], 404)
        for path in ("/98/", "/99x/metrics", "/99", "/99999999999999999999999/"):
            self.assertEqual(self.ask(path)[0], 404, path)

    def test_two_of_one_process_are_one(self):
        self.serve(self.file, self.file)
        self.assertEqual(self.get("/metrics").decode(), self.text("prometheus", self.file))

    def test_the_list_shows_commands_as_text(self):
        made = json.loads(self.file.read_text())
        made["process"].update(pid=98, command=["<script>alert(1)</script>", "a\u001b[31m&b"])
        self.serve(self.file, self.write("other.json", json.dumps(made)))
        page = self.get("/").decode()
        self.assertIn("&lt;script>alert(1)&lt;/script>", page)
        self.assertNotIn("\u001b", page)
        self.assertIn("&amp;b", page)

    def test_a_report_is_new_after_a_second(self):
        file = self.another(1000)
        self.serve(file)
        self.assertIn(b'context="other"} 1000\n', self.get("/metrics"))
        self.another(2000)
        time.sleep(1.2)
        self.assertIn(b'context="other"} 2000\n', self.get("/metrics"))


class Strangers(Case):
    def test_what_there_is_not(self):
        self.serve(self.file)
        status, _, body = self.ask("/debug/pprof/goroutine")
        self.assertEqual(status, 404)
        self.assertIn(b"/metrics", body)
        status, headers, _ = self.ask("/", method="POST", body="x" * 100000)
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        status, headers, body = self.ask("/metrics", method="HEAD")
        self.assertEqual((status, body), (200, b""))

    def test_a_name_that_points_here_gets_nothing(self):
        self.serve(self.file)
        for host in ("evil.example", "127.evil.example", "localhost.evil.example:80", "127.0.0.1.evil", "[::2]", ""):
            self.assertEqual(self.ask("/metrics", Host=host)[0], 403, host)
        for host in ("localhost", "LOCALHOST:9464", "127.0.0.1:1", "127.1.2.3", "[::1]:9464"):
            self.assertEqual(self.ask("/metrics", Host=host)[0], 200, host)

    def test_an_address_of_the_network_is_told(self):
        self.serve(self.file, place="0.0.0.0:0")
        self.assertIn("anybody who reaches this machine", self.said)
        self.assertEqual(self.ask("/metrics", Host="server.example")[0], 200)

    def test_who_reads_nothing_holds_nobody_up(self):
        self.serve(self.file)
        slow = []
        for path in ("/", "/metrics", "/report.json"):
            for _ in range(6):
                s = socket.create_connection(("127.0.0.1", self.port))
                self.addCleanup(s.close)
                s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                slow.append(s)
        half = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(half.close)
        half.sendall(b"GET /metr")
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            bodies = set(pool.map(lambda _: self.get("/metrics"), range(40)))
        self.assertEqual(len(bodies), 1)
        self.assertLess(time.monotonic() - began, 20)

    def test_no_http(self):
        self.serve(self.file)
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + b"\0" * 200 + b"\r\n\r\n")
            s.recv(1000)
        self.get("/metrics")


class Places(Case):
    def test_a_port_that_is_taken(self):
        self.serve(self.file)
        done = self.run_serve("--listen", f"127.0.0.1:{self.port}", self.file)
        self.assertEqual(done, (1, f"hakmem: 127.0.0.1:{self.port}: Address already in use\n"))

    def run_serve(self, *arguments):
        done = subprocess.run([COMMAND, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_places_that_are_none(self):
        for place in ("", "x", "65536", "-1", "127.0.0.1:", ":80", "::1:80", "1.2.3.4:5x"):
            status, said = self.run_serve("--listen", place, self.file)
            self.assertEqual((status, said.count("\n")), (1, 1), said)
            self.assertIn("not a place to listen at", said)
        status, said = self.run_serve("--listen", "no such host.invalid:80", self.file)
        self.assertEqual((status, said.count("\n")), (1, 1), said)
        status, said = self.run_serve("--listen", self.folder / "none" / "socket", self.file)
        self.assertEqual(status, 1)
        self.assertIn("No such file or directory", said)

    def test_who_is_not_there_ends_the_start(self):
        status, said = self.run_serve("--listen", "127.0.0.1:0", self.folder / "none.json")
        self.assertEqual((status, said), (1, f"hakmem: {self.folder}/none.json: No such file or directory\n"))
        done = subprocess.run([COMMAND, "report", "--listen", "1", self.file], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--listen is an option of serve", done.stderr)

    def test_a_socket_of_a_file(self):
        path = self.folder / "socket"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))  # of a process that has ended
        process = self.serve(self.file, place=str(path))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0)
        status, _, body = self.ask("/metrics", connection=Unix(path), Host="any")
        self.assertEqual((status, body.decode()), (200, self.text("prometheus", self.file)))
        self.assertEqual(self.run_serve("--listen", path, self.file), (1, f"hakmem: {path}: Address already in use\n"))
        process.terminate()
        self.assertEqual(process.wait(timeout=10), 0)
        self.assertFalse(path.exists())

    def test_another_file_stays(self):
        self.assertEqual(self.run_serve("--listen", self.file, self.file)[0], 1)
        self.assertTrue(self.file.is_file())

    def test_signals_end_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.serve(self.file)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=10), 0)


class Processes(Case):
    def test_one_that_ends_while_it_is_looked_at(self):
        path = self.folder / "live"
        server = test_top.Server(path, json.dumps(test_top.report({"f": 7000})).encode())
        self.serve(path)
        self.assertIn(b'context="main"} 7000\n', self.get("/metrics"))
        server.socket.close()
        os.unlink(path)
        time.sleep(1.2)
        status, _, body = self.ask("/metrics")
        self.assertEqual((status, body.decode()), (503, f"{path}: No such file or directory\n"))

    def test_one_that_is_silent_is_waited_for_once(self):
        path = self.folder / "live"
        test_top.Server(path, b"", hold=True)
        self.serve(path, self.another(4321))  # waits for it
        time.sleep(1.2)
        began = time.monotonic()
        self.assertIn(b"4321", self.get("/metrics"))
        self.assertLess(time.monotonic() - began, 5)

    def test_all_that_listen(self):
        folder = Path(f"/tmp/hakmem-{os.geteuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / str(os.getpid())
        self.serve()  # before there is one
        test_top.Server(path, json.dumps(test_top.report({"f": 7000})).encode())
        self.addCleanup(path.unlink)
        time.sleep(1.2)
        self.assertIn(b'context="main"} 7000\n', self.get(f"/{os.getpid()}/metrics"))


if __name__ == "__main__":
    if "serve" not in test_command.hakmem("--help").stdout.decode():
        print("this build has no serve")
        sys.exit(77)
    unittest.main()
