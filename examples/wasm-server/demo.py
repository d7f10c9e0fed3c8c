#!/usr/bin/env python3
"""The part of scripts/demo about WebAssembly: two customers, first alone, then beside a hostile one."""

import argparse
import http.client
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from driver.show import add_build, add_number, heading, paint  # noqa: E402

MIB = 2**20
ORDINARY = "JSON.parse(JSON.stringify(Array.from({length: 50}, (_, i) => ({i, square: i * i})))).length"
WITHOUT_END = "let all = []; for (;;) all.push(new Array(10000).fill(all.length))"


class Client(threading.Thread):
    """Runs one script again and again until the end."""

    def __init__(self, port, tenant, script, end):
        super().__init__()
        self.port, self.tenant, self.script, self.end = port, tenant, script, end
        self.times, self.answers = [], {}

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while time.monotonic() < self.end:
            before = time.monotonic()
            connection.request("POST", f"/run/{self.tenant}", self.script)
            answer = connection.getresponse()
            text = answer.read().decode()
            self.times.append((time.monotonic() - before) * 1000)
            key = f"{answer.status} {text}"
            self.answers[key] = self.answers.get(key, 0) + 1
        connection.close()


def stats(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/stats")
    text = connection.getresponse().read().decode()
    connection.close()
    return {(n, t): float(v) for n, t, v in re.findall(r'^wasm_(\w+)\{tenant="(\w+)"\} (\S+)$', text, re.M)}


def scene(port, tenants, seconds):
    end = time.monotonic() + seconds
    clients = [Client(port, t, WITHOUT_END if t == "mallory" else ORDINARY, end) for t in tenants]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return clients


def show(title, clients, figures):
    print("   " + paint("4", title))
    for c in clients:
        answer = max(c.answers, key=c.answers.get)
        peak = figures[("linear_peak_bytes", c.tenant)] / MIB
        refused = figures[("linear_refused_total", c.tenant)]
        print(
            f"   {c.tenant:<10}{len(c.times):>8,}{statistics.median(c.times):>10.2f}{max(c.times):>10.1f}"
            f"{peak:>10.1f}{refused:>10,.0f}   {answer[:40]}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_build(parser)
    parser.add_argument("--seconds", type=float, default=2, help="of each of the two scenes (2)")
    add_number(parser)
    args = parser.parse_args()
    folder = args.build / "examples/wasm-server"
    command = [str(folder / "wasm-server"), str(folder / "quickjs.wasm")]
    if not Path(command[0]).exists():
        print(
            "demo: no wasm-server in this build (wasmtime or libmicrohttpd is missing), left out",
            file=sys.stderr,
        )
        return
    server = subprocess.Popen(
        [*command, "--port=0", "--stats=0", "--memory=16", "--time=1000"], stdout=subprocess.PIPE, text=True
    )
    try:
        lines = [server.stdout.readline() for _ in range(2)]
        if not lines[1]:
            sys.exit("demo: wasm-server does not start")
        port, stats_port = (int(re.search(r":(\d+)/", line)[1]) for line in lines)
        heading(
            args.number,
            "JavaScript of customers, each run isolated, 16 MiB a customer",
            "examples/wasm-server",
        )
        print(
            f"   {'':<10}{'runs':>8}{'median ms':>10}{'slowest':>10}{'peak MiB':>10}{'refused':>10}   answer"
        )
        for title, tenants in (
            ("two customers", ["alice", "bob"]),
            ("and one that allocates without end", ["alice", "bob", "mallory"]),
        ):
            clients = scene(port, tenants, args.seconds)
            show(title, clients, stats(stats_port))
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()
    shown = [
        str(Path(part).relative_to(ROOT)) if Path(part).is_relative_to(ROOT) else part for part in command
    ]
    print(f"\n   To see them live at http://127.0.0.1:8081/:\n   {' '.join(shown)}")


if __name__ == "__main__":
    main()
