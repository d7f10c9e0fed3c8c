"""What a soak drives: each is a process that does one step of work when told to, and tells its figures."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = [f"customer-{i}" for i in range(4)]
SCRIPT = "JSON.stringify(Array.from({length: 200}, (_, i) => ({i, square: i * i}))).length"


class Missing(Exception):
    """What a kind needs is not on this machine or in this build."""


class Process:
    warm = 0  # steps until the tables of the program are full
    counted = True  # whether its figures have the system calls of hakmem

    def start(self, command, **more):
        """A process that ends with this one, however this one ends."""
        command = ["setpriv", "--pdeathsig", "KILL", *(str(part) for part in command)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"soak: {' '.join(self.process.args)} ended with {self.process.wait()}")
        return line

    def resident(self):
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Rss:\s+(\d+) kB", text, re.M)[1]) << 10

    def mappings(self):
        return Path(f"/proc/{self.process.pid}/maps").read_text().count("\n")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Piped(Process):
    """A line in, a line of figures out."""

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.last = json.loads(self.line())

    def figures(self):
        return self.last


class Heap(Piped):
    def __init__(self, build, name, leak):
        program = build / f"bench/soak/soak-{name}"
        if not program.exists():
            raise Missing(f"no {program.name} in this build")
        self.warm = 50
        self.start([program, leak])


class Lua(Piped):
    warm = 100

    def __init__(self, build, _, leak):
        programs = [build / f"bindings/lua/{p}" for p in ("hakluajit", "haklua5.4")]
        program = next((p for p in programs if p.exists()), None)
        if not program:
            raise Missing("no hakluajit and no haklua5.4 in this build")
        self.start([program, HERE / "server.lua", leak])


class Served(Process):
    """A server on a port of its own; one client that keeps its connection."""

    def connect(self):
        port = int(re.search(r"listening on http://127\.0\.0\.1:(\d+)/", self.line())[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            sys.exit(f"soak: {method} {path}: {answer.status} {text}")
        return text

    def close(self):
        self.connection.close()
        super().close()


class Python(Served):
    warm = 1000

    def __init__(self, build, _, leak):
        path = build / "bindings/python"
        environment = {**os.environ, "PYTHONPATH": str(path)}
        for python in (sys.executable, shutil.which("python3")):  # the build has a module for one of them
            command = [python, "-B", "-m", "hakmem"]
            if subprocess.run([*command, "check"], env=environment, capture_output=True, check=False).stdout:
                break
        else:
            raise Missing(f"no package hakmem for {sys.executable} in {path}")
        self.start([*command, "run", "--all", "--report", "", HERE / "server.py", leak], env=environment)
        self.connect()
        self.number = 0

    def step(self):
        self.number += 1
        first = self.number * 7919
        self.ask("POST", "/", json.dumps([{"name": f"item {first + i}"} for i in range(100)]))

    def figures(self):
        return json.loads(self.ask("GET", "/"))


class Wasm(Served):
    warm = 50
    counted = False

    def __init__(self, build, _, leak):
        folder = build / "examples/wasm-server"
        if not (folder / "wasm-server").exists():
            raise Missing("no wasm-server in this build")
        if leak:
            raise Missing("scripts of customers are isolated, a leak cannot be planted")
        self.start([folder / "wasm-server", "--port=0", "--stats=0", "--memory=16", folder / "quickjs.wasm"])
        self.connect()
        port = int(re.search(r"statistics on http://127\.0\.0\.1:(\d+)/", self.line())[1])
        self.statistics = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.runs = 0

    def step(self):
        self.ask("POST", f"/run/{NAMES[self.runs % len(NAMES)]}", SCRIPT)
        self.runs += 1

    def figures(self):
        self.statistics.request("GET", "/stats")
        text = self.statistics.getresponse().read().decode()
        found = re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.M)
        total = {}
        for name, value in found:
            total[name] = total.get(name, 0) + float(value)
        live = total["wasm_linear_bytes"] + total["wasm_heap_bytes"]
        return {
            "ops": self.runs,
            "live_bytes": live,
            "committed_bytes": live + total["wasm_warm_bytes"],
            "metadata_bytes": total["wasm_reserved_bytes"],
        }


KINDS = {"core": Heap, "shared": Heap, "lua": Lua, "python": Python, "wasm": Wasm}
