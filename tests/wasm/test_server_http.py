#!/usr/bin/env python3
"""examples/wasm-server: odd requests, clients that take their time, memory of ten thousand requests."""

import contextlib
import re
import resource
import select
import socket
import subprocess
import threading
import time
import unittest

from server_process import CODE, QUICKJS, SERVER, Server

MIB = 2**20


def post(path, body, *headers):
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunks(*parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def status(answer):
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else None


def closed(connection, seconds):
    """Whether the other side closes it in this time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--time=500")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        self.assertEqual(self.server.run("after", "1 + 1"), (200, "2"))

    def customers(self):
        return {labels for name, labels in self.server.stats() if name == "wasm_instances"}

    def test_names(self):
        before = self.customers()
        for name in (
            "a%00b",
            "%61",
            "a%zz",
            "a%",
            "%",
            "a%2fb",
            "A",
            "a_b",
            "a.b",
            "a/b",
            "a/",
            "",
            "..",
            "ä",
            "a" * 33,
            "a%0d%0a",
            "a+b",
            "a;b",
            "a" * 5000,
        ):
            answer = self.server.raw(post(f"/run/{name}", b"1", "Content-Length: 1"))
            self.assertEqual(status(answer), 400, name)
            self.assertIn(b"1 to 32 of a-z, 0-9 and '-'", answer)
        for raw in (b"a\xff", b"a\tb", b"a\x7f"):
            answer = self.server.raw(post("/run/NAME", b"1", "Content-Length: 1").replace(b"NAME", raw))
            self.assertNotEqual(status(answer), 200, raw)
        self.assertEqual(self.customers(), before)
        for name in ("a" * 32, "0", "-", "a-0"):
            self.assertEqual(self.server.run(name, "1"), (200, "1"))

    def test_queries_are_ignored(self):
        for query in ("?", "?x=1", "?a%00b", "?" + "x" * 3000, "?x=%zz&&&=="):
            self.assertEqual(self.server.run(f"quinn{query}", "1"), (200, "1"), query)
        self.assertEqual(self.server.ask("/stats?x")[0], 200)

    def test_paths(self):
        for path in ("/absent", "/run", "/stats/", "/stats%00", "//", "/%", "/index.html", "/run%2fa", "*"):
            self.assertEqual(self.server.request("GET", path)[0], 404, path)
            self.assertEqual(self.server.request("POST", path, b"1")[0], 404, path)
            self.assertEqual(self.server.ask(path)[0], 404, path)

    def test_customers_see_no_figures(self):
        for path in ("/", "/stats", "/stats?x"):
            for method in ("GET", "HEAD", "POST"):
                self.assertEqual(self.server.request(method, path)[0], 404, path)
        self.assertEqual(self.server.ask("/run/kim", "POST", b"1")[0], 404)
        self.assertNotIn('tenant="kim"', self.customers())

    def test_methods(self):
        def ask(method, path, port=None):
            connection = self.server.connect(port)
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer, body

        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "post"):
            answer, _ = ask(method, "/run/mia")
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "POST"), method)
        for path in ("/stats", "/"):
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
                answer, _ = ask(method, path, self.server.stats_port)
                self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"), method)
            got, text = ask("GET", path, self.server.stats_port)
            head, nothing = ask("HEAD", path, self.server.stats_port)
            self.assertEqual((got.status, head.status, nothing), (200, 200, b""))
            self.assertEqual(got.headers["Content-Type"], head.headers["Content-Type"])
            self.assertEqual(int(got.headers["Content-Length"]), len(text))
            if path == "/":
                self.assertEqual(head.headers["Content-Length"], got.headers["Content-Length"])
            self.assertGreater(int(head.headers["Content-Length"]), 1000)
        self.assertEqual(ask("HEAD", "/absent")[0].status, 404)
        self.assertNotIn('tenant="mia"', self.customers())
        # A connection goes on after any of these.
        connection = self.server.connect()
        for _ in range(3):
            self.assertEqual(self.server.request("GET", "/run/mia", None, connection)[0], 405)
            self.assertEqual(self.server.request("POST", "/stats", b"x" * 100000, connection)[0], 404)
            self.assertEqual(self.server.request("POST", "/run/MIA", b"x" * 100000, connection)[0], 400)
            self.assertEqual(self.server.run("mio", "1 //" + " " * 300000, connection)[0], 413)
            self.assertEqual(self.server.run("mio", "1", connection), (200, "1"))
        connection.close()
        connection = self.server.connect(self.server.stats_port)
        for _ in range(3):
            self.assertEqual(self.server.ask("/stats", "POST", b"x" * 100000, connection)[0], 405)
            self.assertEqual(self.server.ask("/stats", "GET", b"x" * 100000, connection)[0], 200)
        connection.close()

    def test_bodies_too_large(self):
        # Before the body: it never comes.
        for length in (MIB + 1, 10**12):
            self.assertEqual(status(self.server.raw(post("/run/tom", b"", f"Content-Length: {length}"))), 413)
            self.assertEqual(status(self.server.raw(post("/run/TOM", b"", f"Content-Length: {length}"))), 400)
            wrong = post("/stats", b"", f"Content-Length: {length}")
            self.assertEqual(status(self.server.raw(wrong, port=self.server.stats_port)), 405)
        get = f"GET /stats HTTP/1.1\r\nHost: x\r\nContent-Length: {10**9}\r\n\r\n".encode()
        self.assertEqual(status(self.server.raw(get, port=self.server.stats_port)), 413)
        expects = post("/run/tom", b"", f"Content-Length: {10**9}", "Expect: 100-continue")
        self.assertEqual(status(self.server.raw(expects)), 413)

    def test_chunked_bodies(self):
        def send(body, *headers):
            return self.server.raw(post("/run/una", body, "Transfer-Encoding: chunked", *headers))

        answer = send(chunks(b"6 ", b"*", b" 7", b""))
        self.assertEqual((status(answer), answer.split(b"\r\n\r\n", 1)[1]), (200, b"42"))
        self.assertEqual(status(send(chunks(*[b"1 //" + b" " * 4091] * 63, b" " * 4096, b""))), 200)
        self.assertEqual(status(send(chunks(*[b" " * 4096] * 64, b"1", b""))), 413)
        # However long they are, and also while more comes.
        for count in (300, 1000, 8000):
            self.assertEqual(status(send(chunks(*[b" " * 4096] * count, b""))), 413, count)
        self.assertEqual(status(send(chunks(*[b" " * 4096] * 1000))), 413)
        # Without end: closed.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.assertIn(status(send(chunks(*[b" " * 65536] * 2000))), (None, 413))
        for wrong in (
            b"zz\r\nabc\r\n",
            b"-1\r\nabc\r\n",
            b"ffffffffffffffffff\r\nabc\r\n",
            b"5\r\nabcdefgh\r\n0\r\n\r\n",
        ):
            self.assertNotEqual(status(send(wrong)), 200, wrong)
        # Of both lengths only one can be meant.
        send(chunks(b"1", b""), "Content-Length: 3")
        send(chunks(b"1", b""), "Content-Length: 100000")

    def test_lengths_that_lie(self):
        before = self.server.stats().get(("wasm_runs_total", 'tenant="vic",outcome="ok"'), 0)
        for length in ("-1", "1x", "x", "99999999999999999999999", "0x10", "1 2", "1, 2"):
            answer = self.server.raw(post("/run/vic", b"1", f"Content-Length: {length}"), 3)
            self.assertNotEqual(status(answer), 200, length)
        # Less than is sent: the rest is no request.
        self.server.raw(post("/run/vic", b"1" * 100000, "Content-Length: 1"))
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as s:  # more than is sent
            s.sendall(post("/run/vic", b"1", "Content-Length: 100"))
            s.shutdown(socket.SHUT_WR)
            self.assertTrue(closed(s, 30))
        after = self.server.stats().get(("wasm_runs_total", 'tenant="vic",outcome="ok"'), 0)
        self.assertLessEqual(after - before, 1)

    def test_headers_without_end(self):
        line = b"X-%d: " + b"y" * 1000 + b"\r\n"
        flood = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(line % i for i in range(1000)) + b"\r\n"
        self.assertNotEqual(status(self.server.raw(flood)), 200)
        self.assertNotEqual(
            status(self.server.raw(b"GET /" + b"x" * MIB + b" HTTP/1.1\r\nHost: x\r\n\r\n")), 200
        )
        self.assertNotEqual(status(self.server.raw(b"G" * MIB)), 200)
        for garbage in (
            b"\x16\x03\x01\x02\x00\x01" * 100,
            b"\r\n" * 1000,
            b"\0" * 1000,
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET\r\n\r\n",
        ):
            self.server.raw(garbage, 0.2)

    def test_clients_that_go_away(self):
        script = b"for (let i = 0; i < 300000; i++); 'x'.repeat(60000)"
        for _ in range(30):
            with socket.create_connection(("127.0.0.1", self.server.port), 30) as s:
                s.sendall(post("/run/will", script, f"Content-Length: {len(script)}"))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not an end

    def test_scripts_answers_are_not_taken_for_pages(self):
        answer = self.server.raw(post("/run/xan", b"'<b>'", "Content-Length: 5"))
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertEqual(body, b"<b>")
        self.assertIn(b"Content-Type: text/plain; charset=utf-8", head)
        self.assertIn(b"X-Content-Type-Options: nosniff", head)


class Slow(unittest.TestCase):
    def test_a_byte_now_and_then_does_not_hold_a_connection(self):
        with Server("--deadline=1500", "--connections=150", "--per-address=140") as server:
            end = time.monotonic() + 60
            waiting = [socket.create_connection(("127.0.0.1", server.port), 30) for _ in range(100)]
            data = post("/run/a", b"x" * 200, "Content-Length: 200")
            sent = 0
            while waiting and time.monotonic() < end:
                for s in list(waiting):
                    try:
                        s.send(data[sent % len(data) :][:1])
                        if not select.select([s], [], [], 0)[0]:
                            continue
                        self.assertEqual(s.recv(1000), b"")  # closed, without an answer
                    except (ConnectionResetError, BrokenPipeError):
                        pass
                    s.close()
                    waiting.remove(s)
                sent += 1
                self.assertEqual(server.run("b", "1"), (200, "1"))
                time.sleep(0.1)
            self.assertEqual(len(waiting), 0)
            self.assertGreater(sent, 3)

    def test_a_client_that_does_not_read_its_answers(self):
        with Server("--deadline=1000") as server, socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.settimeout(0.5)
            with contextlib.suppress(TimeoutError, ConnectionResetError, BrokenPipeError):
                s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20000)  # 100 MiB of answers
            poll = select.poll()
            poll.register(s, select.POLLHUP)
            self.assertTrue(poll.poll(60000))
            self.assertEqual(server.run("a", "1"), (200, "1"))

    def test_a_script_may_take_longer_than_the_deadline(self):
        with Server("--deadline=200", "--time=1000") as server:
            self.assertEqual(server.run("a", "for (;;);")[0], 408)

    def test_idle_connections_end(self):
        with Server("--deadline=500") as server:
            connection = server.connect()
            self.assertEqual(server.run("a", "1", connection), (200, "1"))
            self.assertTrue(closed(connection.sock, 60))
            connection.close()


class Connections(unittest.TestCase):
    """Addresses 127.0.0.x are all of this machine, and different clients to the server."""

    def connect(self, address):
        s = socket.create_connection(("127.0.0.1", self.server.port), 60, (address, 0))
        self.addCleanup(s.close)
        return s

    def ask(self, s, script=b"1"):
        s.settimeout(120)
        s.sendall(b"POST /run/a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(script), script))
        return status(s.recv(10000))

    def test_of_an_address(self):
        with Server("--connections=100", "--per-address=4", "--deadline=600000") as self.server:
            other = self.connect("127.0.0.2")
            self.assertEqual(self.ask(other), 200)
            first = [self.connect("127.0.0.1") for _ in range(4)]
            for s in first:
                self.assertEqual(self.ask(s), 200)
                time.sleep(0.1)  # the server notes the end of an answer after the client has it
            # Each takes the place of the one that has been idle the longest.
            second = []
            for i in range(4):
                second.append(self.connect("127.0.0.1"))
                self.assertTrue(closed(first[i], 60))
                self.assertEqual(self.ask(second[i]), 200)
            for _ in range(50):
                self.connect("127.0.0.1")
            self.assertEqual(self.ask(self.connect("127.0.0.1")), 200)
            self.assertEqual(self.ask(other), 200)

    def test_in_all(self):
        with Server("--connections=10", "--per-address=4", "--deadline=600000") as self.server:
            for i in range(100):
                s = self.connect(f"127.0.0.{2 + i % 20}")
            self.assertEqual(self.ask(s), 200)
            self.assertEqual(self.ask(self.connect("127.0.0.100")), 200)

    def test_connections_with_scripts_stay(self):
        with Server("--connections=4", "--per-address=2", "--time=1500") as self.server:
            answers = []
            busy = [self.connect("127.0.0.2") for _ in range(2)]
            threads = [
                threading.Thread(target=lambda s=s: answers.append(self.ask(s, b"for (;;);"))) for s in busy
            ]
            for thread in threads:
                thread.start()
            while self.server.stats().get(("wasm_instances", 'tenant="a"')) != 2:
                time.sleep(0.01)
            for _ in range(20):
                self.assertTrue(closed(self.connect("127.0.0.2"), 60))
            for _ in range(20):
                self.connect("127.0.0.3")
            for thread in threads:
                thread.join()
            self.assertEqual(answers, [408, 408])

    def test_where_statistics_are(self):
        with Server("--stats=none") as server:
            self.assertEqual(server.run("ned", "1"), (200, "1"))
            self.assertEqual(server.request("GET", "/stats")[0], 404)
            taken = f"127.0.0.1:{server.port}"
            for place, why in (
                (taken, f"cannot listen on --stats={taken}"),
                ("x", "--stats must be a port, an address and a port, or none; it is 'x'"),
                ("", "it is ''"),
                ("70000", "it is '70000'"),
                ("127.0.0.1:", "it is '127.0.0.1:'"),
                ("host:1", "'host' is not an IPv4 address"),
            ):
                command = [SERVER, "--port=0", f"--stats={place}", CODE, QUICKJS]
                done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (1, ""), place)
                self.assertIn(why, done.stderr)
        with Server("--stats=127.0.0.1:0") as server:
            self.assertEqual(server.ask("/stats")[0], 200)

    def test_descriptors(self):
        def limit(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        done = subprocess.run(
            [SERVER, "--port=0", QUICKJS], capture_output=True, text=True, preexec_fn=limit(100, 200)
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("200 connections need 328 file descriptors, the limit is 200", done.stderr)
        with Server("--per-address=200", preexec_fn=limit(100, 1000)) as self.server:
            held = [self.connect("127.0.0.1") for _ in range(150)]
            self.assertEqual([self.ask(s) for s in held], [200] * 150)


class Memory(unittest.TestCase):
    def resident(self):
        """Without pages of the image, which many guests share, and what is kept warm for the next one."""
        with open(f"/proc/{self.server.process.pid}/status") as f:
            own = int(re.search(r"RssAnon:\s+(\d+) kB", f.read())[1]) * 1024
        return own - self.server.stats()[("wasm_warm_bytes", "")]

    def test_ten_thousand_requests(self):
        scripts = (
            "'x'.repeat(20000)",
            "throw new Error('y'.repeat(2000))",
            "await null; Promise.reject(3); 1",
            "1 +",
        )
        with Server("--customers=20") as self.server:
            connection = self.server.connect()
            sizes = []
            for i in range(10000):
                # Nine of ten from a few customers, the tenth from one that is new.
                name = f"n{i}" if i % 10 == 0 else f"c{i % 7}"
                answer, _ = self.server.run(name, scripts[i % 4], connection)
                self.assertEqual(answer, 422 if i % 4 else 200)
                if i % 100 == 0:  # a connection of its own, an answer that nobody reads
                    self.server.raw(post("/run/c0", b"", "Content-Length: 0"))
                    with socket.create_connection(("127.0.0.1", self.server.port), 30) as s:
                        s.sendall(post("/run/c1", b"1", "Content-Length: 100"))
                if i % 1000 == 999:
                    sizes.append(self.resident())
            connection.close()
            self.assertEqual(self.server.stats()[("wasm_customers", "")], 20)
            # 1 KiB of a request would be 8 MiB.
            self.assertLess(sizes[9], sizes[1] + 6 * MIB, [round(size / MIB, 1) for size in sizes])
            print(f"\nresident MiB each 1000 requests: {[round(size / MIB, 1) for size in sizes]}")


if __name__ == "__main__":
    unittest.main()
