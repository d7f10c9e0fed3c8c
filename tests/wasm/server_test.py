#!/usr/bin/env python3
"""examples/wasm-server: scripts, limits, neighbours of a hostile tenant, statistics."""

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

SERVER, QUICKJS = os.environ["SERVER"], os.environ["QUICKJS"]
SECONDS = float(os.environ.get("HAKMEM_SERVER_SECONDS", "3"))
WITHOUT_END = "let all = []; for (;;) all.push(new Array(10000).fill(all.length))"
MIB = 2**20


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen(
            [SERVER, "--port=0", *options, QUICKJS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)/\n", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"no server: {line!r} {self.process.stderr.read()}")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.process.stdout.close()
            self.errors = self.process.stderr.read()
            self.process.stderr.close()
        if self.status != 0:
            raise AssertionError(f"the server ended with {self.status}: {self.errors}")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, connection=None):
        c = connection or self.connect()
        c.request(method, path, body)
        answer = c.getresponse()
        text = answer.read().decode()
        if not connection:
            c.close()
        return answer.status, text

    def run(self, tenant, script, connection=None):
        return self.request("POST", f"/run/{tenant}", script.encode(), connection)

    def stats(self):
        """(name, labels as text) -> value."""
        status, text = self.request("GET", "/stats")
        assert status == 200
        return {
            (name, labels or ""): float(value)
            for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M)
        }

    def value(self, name, tenant, more=""):
        return self.stats()[(f"wasm_{name}", f'tenant="{tenant}"{more}')]


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--memory=8", "--time=300")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_values_and_exceptions(self):
        self.assertEqual(self.server.run("ann", "6 * 7"), (200, "42"))
        self.assertEqual(self.server.run("ann", "JSON.stringify([1, {a: 'é'}])"), (200, '[1,{"a":"é"}]'))
        self.assertEqual(self.server.run("ann", "throw new RangeError('far')"), (422, "RangeError: far"))
        self.assertEqual(self.server.run("ann", "1 +")[0], 422)
        self.assertEqual(self.server.run("ann", ""), (200, "undefined"))

    def test_nothing_stays_from_script_to_script(self):
        for _ in range(20):
            self.assertEqual(self.server.run("bea", "typeof kept"), (200, "undefined"))
            self.assertEqual(
                self.server.run("bea", "globalThis.kept = 1; Array.prototype.at = null; 1"), (200, "1")
            )
            self.assertEqual(self.server.run("bea", "[5].at(0)"), (200, "5"))
        self.assertGreater(self.server.value("resets_total", "bea"), 50)
        self.assertLessEqual(self.server.value("instantiations_total", "bea"), 2)

    def test_clock_and_random_numbers(self):
        now = int(self.server.run("cal", "Date.now()")[1]) / 1000
        self.assertLess(abs(now - time.time()), 60)

    def test_time_limit(self):
        status, text = self.server.run("dan", "for (;;);")
        self.assertEqual((status, text), (408, "wasm trap: interrupt"))
        self.assertEqual(self.server.run("dan", "1"), (200, "1"))

    def test_deep_recursion(self):
        self.assertEqual(self.server.run("eve", "(function f() { return f() + 1 })()")[0], 422)
        self.assertEqual(self.server.run("eve", "1"), (200, "1"))

    def test_memory_limit(self):
        for _ in range(3):
            self.assertEqual(self.server.run("fay", WITHOUT_END), (422, "InternalError: out of memory"))
            self.assertEqual(self.server.run("fay", "'still ' + 'here'"), (200, "still here"))
        self.assertGreater(self.server.value("linear_refused_total", "fay"), 0)
        self.assertLessEqual(self.server.value("linear_peak_bytes", "fay"), 8 * MIB)
        self.assertGreater(self.server.value("linear_peak_bytes", "fay"), 6 * MIB)

    def test_bad_requests(self):
        self.assertEqual(self.server.run("UPPER", "1")[0], 400)
        self.assertEqual(self.server.run("x" * 33, "1")[0], 400)
        self.assertEqual(self.server.run("", "1")[0], 400)
        self.assertEqual(self.server.run("gus", "1" * (256 * 1024 + 1))[0], 413)
        self.assertEqual(self.server.run("gus", "7 //" + " " * (256 * 1024 - 4)), (200, "7"))
        self.assertEqual(self.server.request("GET", "/absent")[0], 404)
        self.assertEqual(self.server.request("GET", "/run/gus")[0], 404)

    def test_page(self):
        status, text = self.server.request("GET", "/")
        self.assertEqual(status, 200)
        # What the page asks for exists.
        self.server.run("hal", "1")
        names = {name for name, _ in self.server.stats()}
        asked = set(re.findall(r"wasm_\w+", text))
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - names, set())

    def test_statistics_are_prometheus_text(self):
        self.server.run("ida", "1")
        _, text = self.server.request("GET", "/stats")
        declared = set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                self.assertRegex(line, r"^# TYPE wasm_\w+ (gauge|counter)$")
                declared.add(line.split()[2])
            elif not line.startswith("# HELP "):
                self.assertRegex(line, r'^wasm_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.]+$')
                self.assertIn(re.match(r"\w+", line)[0], declared)
        stats = self.server.stats()
        labels = sum(
            value
            for (name, of), value in stats.items()
            if name == "wasm_heap_label_bytes" and 'tenant="ida"' in of
        )
        self.assertEqual(labels, stats[("wasm_heap_bytes", 'tenant="ida"')])
        self.assertGreater(labels, 1000)


class Limits(unittest.TestCase):
    def test_customers(self):
        with Server("--customers=2") as server:
            self.assertEqual(server.run("a", "1")[0], 200)
            self.assertEqual(server.run("b", "1")[0], 200)
            self.assertEqual(server.run("c", "1"), (503, "too many customers"))
            self.assertEqual(server.run("a", "1")[0], 200)

    def test_instances(self):
        with Server("--instances=1", "--time=4000") as server:
            slow = threading.Thread(target=server.run, args=("a", "for (;;);"))
            slow.start()
            try:
                while slow.is_alive() and server.stats().get(("wasm_instances", 'tenant="a"')) != 1:
                    time.sleep(0.01)
                status, text = server.run("a", "1")
                self.assertEqual(server.run("b", "1"), (200, "1"))
                self.assertTrue(slow.is_alive())
            finally:
                slow.join()
            self.assertEqual(status, 503)
            self.assertIn("limit of instances", text)
            self.assertEqual(server.run("a", "1"), (200, "1"))

    def test_loopback_only(self):
        with Server() as server:
            self.assertEqual(server.run("a", "1"), (200, "1"))
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", server.port), 5)

    def test_options(self):
        for wrong in (["--port=x"], ["--memory=0"], ["--absent"], ["--connections=0"], ["a", "b"]):
            done = subprocess.run([SERVER, *wrong, QUICKJS], capture_output=True, text=True)
            self.assertEqual(done.returncode, 64, wrong)
        done = subprocess.run([SERVER, "/absent.wasm"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "wasm-server: cannot read /absent.wasm\n"))
        done = subprocess.run([SERVER, "--address=here", QUICKJS], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'here' is not an IPv4 address", done.stderr)


class Load(unittest.TestCase):
    """Two clients and a tenant that allocates without end, all the time."""

    def client(self, tenant):
        connection = self.server.connect()
        done, slowest = 0, 0
        while time.monotonic() < self.end:
            expected = str(sum(i * i for i in range(done % 50)))
            before = time.monotonic()
            script = f"Array.from({{length: {done % 50}}}, (_, i) => i * i).reduce((a, b) => a + b, 0)"
            answer = self.server.run(tenant, script, connection)
            slowest = max(slowest, time.monotonic() - before)
            if answer != (200, expected):
                self.wrong.append((tenant, script, answer))
            done += 1
        connection.close()
        self.runs[tenant], self.slowest[tenant] = done, slowest

    def hostile(self):
        connection = self.server.connect()
        done = 0
        while time.monotonic() < self.end:
            answer = self.server.run("mallory", WITHOUT_END, connection)
            if answer not in ((422, "InternalError: out of memory"), (408, "wasm trap: interrupt")):
                self.wrong.append(("mallory", answer))
            done += 1
        connection.close()
        self.runs["mallory"] = done

    def test_neighbours(self):
        with Server("--memory=16", "--time=2000") as self.server:
            self.runs, self.slowest, self.wrong = {}, {}, []
            self.end = time.monotonic() + SECONDS
            threads = [
                threading.Thread(target=self.client, args=("alice",)),
                threading.Thread(target=self.client, args=("bob",)),
                threading.Thread(target=self.hostile),
            ]
            for thread in threads:
                thread.start()
            peaks = []
            while any(t.is_alive() for t in threads):
                peaks.append(self.server.stats()[("wasm_process_resident_bytes", "")])
                time.sleep(0.1)
            for thread in threads:
                thread.join()
            self.assertEqual(self.wrong, [])
            for tenant in ("alice", "bob", "mallory"):
                self.assertGreater(self.runs[tenant], 3, tenant)
                self.assertLess(self.slowest.get(tenant, 0), 2, tenant)
            for tenant in ("alice", "bob"):
                self.assertEqual(self.server.value("linear_refused_total", tenant), 0)
                self.assertEqual(self.server.value("runs_total", tenant, ',outcome="ok"'), self.runs[tenant])
            self.assertGreater(self.server.value("linear_refused_total", "mallory"), 0)
            self.assertLessEqual(self.server.value("linear_peak_bytes", "mallory"), 16 * MIB)
            # The hostile tenant's limit and the warm budget (64 MiB) bound the whole process.
            self.assertLess(max(peaks), peaks[0] + 16 * MIB + 64 * MIB + 16 * MIB)
            slowest = max(self.slowest.values()) * 1000
            print(
                f"\n{SECONDS:g} s: {self.runs}, slowest {slowest:.0f} ms, resident {max(peaks) / MIB:.0f} MiB"
            )


if __name__ == "__main__":
    unittest.main()
