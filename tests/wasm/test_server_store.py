#!/usr/bin/env python3
"""examples/wasm-server: tokens, stored scripts, the console, quotas of CPU time, places to listen on."""

import http.client
import json
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from server_process import CODE, QUICKJS, SERVER, Server

ALICE, BOB = "alice-0123456789abcdef", "bob-0123456789abcdefgh"


class Client:
    """Requests with a token, to a server at a port or at a socket in the file system."""

    def __init__(self, server, token=None, path=None):
        self.server, self.token, self.path = server, token, path

    def connect(self):
        if not self.path:
            return self.server.connect()
        connection = http.client.HTTPConnection("localhost", timeout=120)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(120)
        connection.sock.connect(self.path)
        return connection

    def ask(self, method, path, body=None, **headers):
        connection = self.connect()
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        text = answer.read().decode()
        self.headers = answer.headers
        connection.close()
        return answer.status, text


def json_run(client, path, body):
    status, text = client.ask("POST", path, body.encode(), Accept="application/json")
    return status, json.loads(text)


class Code(unittest.TestCase):
    def test_the_guest_is_compiled_once(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for _ in range(2):
                with Server(f"--code={folder}") as server:
                    self.assertEqual(server.run("alice", "6 * 7"), (200, "42"))
                files.append([(f.name, f.stat().st_ino) for f in Path(folder).iterdir()])
            self.assertEqual(len(files[0]), 1)
            self.assertEqual(files[0], files[1])
            # Damaged code is compiled anew.
            file = next(Path(folder).iterdir())
            file.write_bytes(file.read_bytes()[:-1] + b"x")
            with Server(f"--code={folder}") as server:
                self.assertEqual(server.run("alice", "6 * 7"), (200, "42"))
            self.assertNotEqual(file.stat().st_ino, files[0][0][1])
            Path(folder).chmod(0o777)
            done = subprocess.run([SERVER, "--port=0", f"--code={folder}", QUICKJS], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("others may write to it", done.stderr)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tokens = self.folder / "tokens"
        self.tokens.write_text(f"# who may\n\nalice {ALICE}\nbob {BOB}\nbob {BOB}-next\n")
        self.scripts = self.folder / "scripts"
        self.scripts.mkdir()

    def refused(self, *options):
        done = subprocess.run(
            [SERVER, "--port=0", "--stats=none", CODE, *options, QUICKJS], capture_output=True, text=True, timeout=120
        )
        self.assertNotEqual(done.returncode, 0)
        return done.stderr


class Tokens(Folder):
    def test_who_may_run(self):
        with Server(f"--tokens={self.tokens}") as server:
            for token, name, expected in (
                (ALICE, "alice", 200),
                (BOB, "bob", 200),
                (BOB + "-next", "bob", 200),
                (ALICE, "bob", 401),
                (BOB, "alice", 401),
                (ALICE[:-1], "alice", 401),
                (ALICE + "x", "alice", 401),
                (ALICE, "carol", 401),
                ("", "alice", 401),
                ("x" * 5000, "alice", 401),
                (None, "alice", 401),
            ):
                client = Client(server, token)
                status, text = client.ask("POST", f"/run/{name}", b"6 * 7")
                self.assertEqual(status, expected, (token, name))
                self.assertEqual(text == "42", expected == 200)
                if expected == 401:
                    self.assertEqual(client.headers["WWW-Authenticate"], "Bearer")
            for header in (ALICE, f"Basic {ALICE}", f"Bearer{ALICE}", f"Bearer {ALICE} x", "Bearer"):
                status, _ = Client(server).ask("POST", "/run/alice", b"1", Authorization=header)
                self.assertEqual(status, 401, header)
            self.assertEqual(Client(server).ask("POST", "/run/alice", b"1", authorization=f"bearer  {ALICE}")[0], 200)
            # Nobody became a customer who had no token.
            self.assertEqual(server.stats()[("wasm_customers", "")], 2)

    def test_files_that_are_refused(self):
        self.assertIn("cannot read the tokens in", self.refused(f"--tokens={self.folder}/absent"))
        for text, why in (
            ("", "there are no tokens in"),
            ("# none\n", "there are no tokens in"),
            ("alice\n", "line 1 of"),
            (f"\nalice {ALICE} x\n", "is not NAME TOKEN"),
            (f"Alice {ALICE}\n", "has a name that is not"),
            ("alice short\n", "has a token of less than 16"),
            (f"alice {'x' * 257}\n", "has a token of less than 16 or more than 256"),
        ):
            self.tokens.write_text(text)
            error = self.refused(f"--tokens={self.tokens}")
            self.assertIn(why, error)
            self.assertNotIn(ALICE, error)
        self.assertIn("--scripts needs --tokens", self.refused(f"--scripts={self.scripts}"))
        self.assertIn("--quota needs --tokens", self.refused("--quota=10"))
        self.tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
        error = self.refused(f"--tokens={self.tokens}", "--quota=10", "--customers=1")
        self.assertIn("--customers must be at least the 2 of", error)
        error = self.refused(f"--tokens={self.tokens}", f"--scripts={self.folder}/absent")
        self.assertIn("is no folder for scripts", error)


class Stored(Folder):
    def options(self):
        return f"--tokens={self.tokens}", f"--scripts={self.scripts}"

    def test_versions(self):
        with Server(*self.options()) as server:
            alice, bob = Client(server, ALICE), Client(server, BOB)
            self.assertEqual(alice.ask("GET", "/scripts/alice"), (200, ""))
            self.assertEqual(alice.ask("POST", "/run/alice/sum")[0], 404)
            for version in range(1, 13):
                code = f"{version} + JSON.parse(input).reduce((a, b) => a + b)"
                self.assertEqual(alice.ask("PUT", "/scripts/alice/sum", code.encode()), (201, f"{version}\n"))
            self.assertEqual(alice.ask("GET", "/scripts/alice"), (200, "sum 12\n"))
            self.assertEqual(alice.ask("POST", "/run/alice/sum", b"[1, 2, 3]"), (200, "18"))
            self.assertEqual(alice.ask("POST", "/run/alice/sum/5", b"[1, 2, 3]"), (200, "11"))
            status, answer = json_run(alice, "/run/alice/sum", "[1]")
            self.assertEqual((status, answer["value"], answer["version"]), (200, "13", 12))
            self.assertEqual(alice.ask("GET", "/scripts/alice/sum/5")[1], code.replace("12 ", "5 "))
            self.assertEqual(alice.ask("GET", "/scripts/alice/sum")[1], code)
            self.assertEqual(alice.headers["X-Script-Version"], "12")
            # Ten versions stay.
            self.assertEqual(alice.ask("POST", "/run/alice/sum/2", b"[1]")[0], 404)
            self.assertEqual(alice.ask("POST", "/run/alice/sum/3", b"[1]")[0], 200)
            self.assertEqual(alice.ask("POST", "/run/alice/sum/13", b"[1]")[0], 404)
            self.assertEqual(len(list((self.scripts / "alice/sum").iterdir())), 10)
            # Bob sees none of it.
            self.assertEqual(bob.ask("GET", "/scripts/bob"), (200, ""))
            self.assertEqual(bob.ask("POST", "/run/bob/sum", b"[1]")[0], 404)
            for method, path in (("GET", "/scripts/alice"), ("GET", "/scripts/alice/sum"),
                                 ("PUT", "/scripts/alice/sum"), ("DELETE", "/scripts/alice/sum"),
                                 ("POST", "/run/alice/sum")):  # fmt: skip
                self.assertEqual(bob.ask(method, path, b"1")[0], 401, path)
        with Server(*self.options()) as server:
            alice = Client(server, ALICE)
            self.assertEqual(alice.ask("POST", "/run/alice/sum", b"[1]"), (200, "13"))
            self.assertEqual(alice.ask("DELETE", "/scripts/alice/sum"), (200, "removed\n"))
            self.assertEqual(alice.ask("DELETE", "/scripts/alice/sum")[0], 404)
            self.assertEqual(alice.ask("POST", "/run/alice/sum", b"[1]")[0], 404)
            self.assertEqual(list((self.scripts / "alice").iterdir()), [])

    def test_paths_and_methods(self):
        with Server(*self.options()) as server:
            alice = Client(server, ALICE)
            self.assertEqual(alice.ask("PUT", "/scripts/alice/x", b"input")[0], 201)
            for path in ("/run/alice/", "/run/alice/X", "/run/alice/..", "/run/alice/x/", "/run/alice/x/0",
                         "/run/alice/x/01", "/run/alice/x/-1", "/run/alice/x/1x", "/run/alice/x/1/1",
                         "/run/alice/x/9999999999", "/run/alice/x/99999999999999999999999", "/run//x",
                         "/run/alice/" + "x" * 33):  # fmt: skip
                self.assertEqual(alice.ask("POST", path, b"1")[0], 400, path)
            for method, path in (("PUT", "/scripts/alice"), ("PUT", "/scripts/alice/x/1"),
                                 ("DELETE", "/scripts/alice"), ("DELETE", "/scripts/alice/x/1"),
                                 ("POST", "/scripts/alice/x"), ("PATCH", "/scripts/alice/x")):  # fmt: skip
                self.assertEqual(alice.ask(method, path, b"1")[0], 405, (method, path))
                self.assertEqual(alice.headers["Allow"], "GET, HEAD, PUT, DELETE")
            self.assertEqual(alice.ask("PUT", "/scripts/alice/x", b" " * 300000)[0], 413)
            # What is given to a script is a string, whatever is in it.
            self.assertEqual(alice.ask("POST", "/run/alice/x", b"'); throw 1; ('\0\xc3\xa9")[1], "'); throw 1; ('\0é")
            self.assertEqual(alice.ask("POST", "/run/alice/x"), (200, ""))
            self.assertEqual(alice.ask("POST", "/run/alice", b"typeof input"), (200, "undefined"))
            for i in range(99):
                self.assertEqual(alice.ask("PUT", f"/scripts/alice/s{i}", b"1")[0], 201)
            self.assertEqual(alice.ask("PUT", "/scripts/alice/s99", b"1")[0], 409)
            self.assertEqual(alice.ask("PUT", "/scripts/alice/s98", b"2"), (201, "2\n"))
        with Server() as server:
            self.assertEqual(Client(server).ask("GET", "/scripts/alice")[0], 404)
            self.assertEqual(Client(server).ask("POST", "/run/alice/x", b"1")[0], 400)


class Console(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--time=2000")
        cls.client = Client(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def run_json(self, script):
        return json_run(self.client, "/run/con", script)

    def lines(self, script):
        return [(line["level"], line["text"]) for line in self.run_json(script)[1]["console"]]

    def test_lines(self):
        script = """
            console.log('hé', 1, [2, {a: 3}], null, undefined, new Error('x'), 5n, true);
            console.error('two\\nlines "quoted" \\0 \\ud800'); console.warn(); console.info(''); console.debug({});
            const loop = {}; loop.loop = loop; console.log(loop); 'value'"""
        status, answer = self.run_json(script)
        self.assertEqual((status, answer["outcome"], answer["value"]), (200, "ok", "value"))
        self.assertGreater(answer["cpu_ms"], 0)
        self.assertEqual(
            [(line["level"], line["text"]) for line in answer["console"]],
            [
                ("log", 'hé 1 [2,{"a":3}] null undefined Error: x 5 true'),
                ("error", 'two\nlines "quoted" \0 \ufffd'),
                ("warn", ""),
                ("info", ""),
                ("debug", "{}"),
                ("log", "{...}"),
            ],
        )
        self.assertEqual(self.client.headers["Content-Type"], "application/json")
        # Without JSON the answer is the value alone.
        self.assertEqual(self.client.ask("POST", "/run/con", script.encode()), (200, "value"))

    def test_lines_of_scripts_that_fail(self):
        for script, outcome in (("throw 1", "error"), ("for (;;);", "time"), ("await 1; throw 2", "error")):
            _, answer = self.run_json("console.log('before'); " + script)
            self.assertEqual(answer["outcome"], outcome)
            self.assertEqual([line["text"] for line in answer["console"]], ["before"])

    def test_nothing_stays(self):
        self.lines("console.log = 1; console.kept = 2; JSON.stringify = () => 'mine'")
        self.assertEqual(self.lines("console.log(typeof console.kept, {})"), [("log", "undefined {}")])
        self.assertEqual(self.lines("JSON.stringify = () => 'mine'; console.log({})"), [("log", "{}")])
        self.assertEqual(self.client.ask("POST", "/run/con", b"typeof emitLine")[1], "undefined")

    def test_limits(self):
        _, answer = self.run_json("for (let i = 0; i < 1500; i++) console.log(i)")
        self.assertEqual((len(answer["console"]), answer["console_lost"]), (1000, 500))
        _, answer = self.run_json("for (let i = 0; i < 100; i++) console.log('x'.repeat(1000))")
        self.assertEqual(len(answer["console"]) + answer["console_lost"], 100)
        self.assertLess(len(answer["console"]), 66)
        _, answer = self.run_json("console.log('x'.repeat(1e6)); console.log('y')")
        self.assertEqual((answer["console"], answer["console_lost"]), ([{"level": "log", "text": "y"}], 1))

    def test_recursion_can_be_caught(self):
        for script in (
            "(function f() { return f() + 1 })()",
            "(function f() { return [1].map(f) })()",
            "(function f() { console.log({toString: f}); return '' + {toString: f} })()",
            "JSON.parse('['.repeat(100000))",
            "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)",
            "eval('('.repeat(100000))",
            "eval('['.repeat(100000))",
            "eval('-'.repeat(100000) + '1')",
            "eval('`${'.repeat(50000))",
            "let p = new Proxy({}, {get(t, k, r) { return r[k] }}); p.x",
        ):
            status, text = self.client.ask("POST", "/run/con", f"try {{ {script} }} catch (e) {{ '' + e }}".encode())
            self.assertEqual((status, text), (200, "RangeError: Maximum call stack size exceeded"), script)
        self.assertEqual(self.client.ask("POST", "/run/con", b"1"), (200, "1"))

    def test_latency(self):
        before = self.server.stats()
        self.client.ask("POST", "/run/con", b"for (let i = performance.now(); performance.now() < i + 30;);")
        after = self.server.stats()

        def grown(name, labels=""):
            return after[(f"wasm_run_seconds_{name}", labels)] - before[(f"wasm_run_seconds_{name}", labels)]

        self.assertEqual(grown("count"), 1)
        self.assertGreaterEqual(grown("sum"), 0.03)
        self.assertEqual(grown("bucket", 'le="0.025"'), 0)
        self.assertEqual(grown("bucket", 'le="+Inf"'), 1)
        counts = [value for (name, _), value in after.items() if name == "wasm_run_seconds_bucket"]
        self.assertEqual(counts, sorted(counts))


class Quota(Folder):
    def test_cpu_time_over_time(self):
        with Server(f"--tokens={self.tokens}", "--quota=5", "--burst=200", "--time=150") as server:
            alice, bob = Client(server, ALICE), Client(server, BOB)
            began = time.monotonic()
            codes = []
            # On a busy machine a script that is stopped has computed for a part of its time alone.
            while time.monotonic() < began + 4 or (429 not in codes and time.monotonic() < began + 60):
                status, text = alice.ask("POST", "/run/alice", b"for (;;);")
                codes.append(status)
                if status == 429:
                    self.assertIn("used up its CPU time", text)
                    self.assertGreaterEqual(int(alice.headers["Retry-After"]), 1)
                    time.sleep(0.02)
                self.assertEqual(bob.ask("POST", "/run/bob", b"1")[0], 200)
            elapsed = time.monotonic() - began
            self.assertEqual(set(codes), {408, 429})
            used = server.value("cpu_seconds_total", "alice")
            # What was saved up, what flowed in, and a debt of one script.
            self.assertLess(used, 0.2 + 0.05 * elapsed + 0.25)
            self.assertGreater(used, 0.2)
            self.assertEqual(server.value("runs_total", "alice", ',outcome="quota"'), codes.count(429))
            while alice.ask("POST", "/run/alice", b"1")[0] == 429:
                self.assertLess(time.monotonic(), began + 60)
                time.sleep(0.05)


class Places(Folder):
    def test_a_socket_in_the_file_system(self):
        path = str(self.folder / "socket")
        command = [SERVER, f"--address=unix:{path}", "--stats=none", CODE, QUICKJS]
        for _ in range(2):
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.assertEqual(server.stdout.readline(), f"listening on unix:{path}\n")
            client = Client(None, path=path)
            for _ in range(20):
                self.assertEqual(client.ask("POST", "/run/uma", b"6 * 7"), (200, "42"))
            # It is in use: not taken over.
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot listen on unix:", done.stderr)
            self.assertEqual(client.ask("POST", "/run/uma", b"6 * 7"), (200, "42"))
            # The first ends without a word and leaves its socket; the second takes it over.
            server.kill()
            server.wait()
            server.stdout.close()
            self.assertTrue(Path(path).exists())
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        server.terminate()
        self.assertEqual(server.wait(60), 0)
        server.stdout.close()
        self.assertFalse(Path(path).exists())
        self.assertIn("is no path for a socket", self.refused("--address=unix:" + "x" * 200))

    def test_addresses_that_a_proxy_tells(self):
        with Server("--forwarded", "--per-address=2", "--connections=20", "--time=1500") as server:
            client = Client(server)
            answers = []

            def loop(address):
                status, _ = Client(server).ask("POST", "/run/vera", b"for (;;);", X_Forwarded_For=address)
                answers.append(status)

            threads = [threading.Thread(target=loop, args=(a,)) for a in ("9.9.9.9, 1.2.3.4", "::ffff:1.2.3.4")]
            for thread in threads:
                thread.start()
            while server.stats().get(("wasm_instances", 'tenant="vera"')) != 2:
                time.sleep(0.01)
            self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For="1.2.3.4")[0], 429)
            # What the client itself says comes first, and does not count.
            self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For="8.8.8.8, 1.2.3.4")[0], 429)
            self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For="1.2.3.4, 8.8.8.8"), (200, "1"))
            self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For="2001:db8::1"), (200, "1"))
            self.assertEqual(client.ask("POST", "/run/vera", b"1"), (200, "1"))
            for wrong in ("x", "", "1.2.3.4,", "1.2.3.4:80", "1.2.3", "a" * 5000):
                self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For=wrong)[0], 400, wrong)
            for thread in threads:
                thread.join()
            self.assertEqual(answers, [408, 408])
            self.assertEqual(client.ask("POST", "/run/vera", b"1", X_Forwarded_For="1.2.3.4"), (200, "1"))
        # Without a proxy nobody may choose an address.
        with Server("--per-address=2") as server:
            self.assertEqual(Client(server).ask("POST", "/run/vera", b"1", X_Forwarded_For="x"), (200, "1"))


if __name__ == "__main__":
    unittest.main()
