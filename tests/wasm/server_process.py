"""A wasm-server for a test, and clients of it."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import tempfile

SERVER, QUICKJS = os.environ["SERVER"], os.environ["QUICKJS"]
# Compiling the guest takes a server two seconds of CPU time: the first one of a test keeps the code for the others.
FOLDER = tempfile.TemporaryDirectory()
CODE = f"--code={FOLDER.name}"


class Server:
    """A server in a process of its own. kept=False: it compiles the guest for itself."""

    def __init__(self, *options, kept=True, **popen):
        if kept and not any(option.startswith("--code=") for option in options):
            options = (CODE, *options)
        self.process = subprocess.Popen(
            [SERVER, "--port=0", "--stats=0", *options, QUICKJS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **popen,
        )
        self.port = self.read_port("listening")
        self.stats_port = None if "--stats=none" in options else self.read_port("statistics")

    def read_port(self, what):
        line = self.process.stdout.readline()
        found = re.fullmatch(what + r" on http://127\.0\.0\.1:(\d+)/\n", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"no server: {line!r} {self.process.stderr.read()}")
        return int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.process.stdout.close()
            self.errors = self.process.stderr.read()
            self.process.stderr.close()
        if self.status != 0:
            raise AssertionError(f"the server ended with {self.status}: {self.errors}")

    def connect(self, port=None):
        return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=120)

    def request(self, method, path, body=None, connection=None, port=None):
        c = connection or self.connect(port)
        c.request(method, path, body)
        answer = c.getresponse()
        text = answer.read().decode()  # fails on what is not UTF-8
        if not connection:
            c.close()
        return answer.status, text

    def run(self, tenant, script, connection=None):
        return self.request("POST", f"/run/{tenant}", script.encode(), connection)

    def ask(self, path, method="GET", body=None, connection=None):
        """At the address of the statistics."""
        return self.request(method, path, body, connection, self.stats_port)

    def stats(self):
        """(name, labels as text) -> value."""
        status, text = self.ask("/stats")
        assert status == 200
        return {
            (name, labels or ""): float(value)
            for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M)
        }

    def value(self, name, tenant, more=""):
        return self.stats()[(f"wasm_{name}", f'tenant="{tenant}"{more}')]

    def raw(self, data, timeout=30, port=None):
        """What the server answers to these bytes until it closes the connection or is silent for so long."""
        with socket.create_connection(("127.0.0.1", port or self.port), timeout) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            answer = b""
            with contextlib.suppress(ConnectionResetError, TimeoutError):
                while part := s.recv(65536):
                    answer += part
            return answer
