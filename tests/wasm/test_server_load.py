#!/usr/bin/env python3
"""examples/wasm-server under load: ordinary and hostile customers at once, and nothing that grows.

HAKMEM_SERVER_SECONDS in the environment: how long the load lasts, 10 by default; an hour is 3600."""

import os
import re
import threading
import time
import unittest

from server_process import Server

SECONDS = max(float(os.environ.get("HAKMEM_SERVER_SECONDS", "10")), 5)
MIB = 2**20
MEMORY_MIB = 8

# Each with the answers that it may have: (status, how the text begins).
OUT_OF_MEMORY = (422, "InternalError: out of memory")
# Where there is no memory even for an error, QuickJS says "null" or "[uninitialized]".
NO_ERROR = [(422, text) for text in ("null", "[uninitialized]", "an exception that has no text")]
NO_TIME = (408, "the script used up its CPU time")
TOO_DEEP = (422, "RangeError: Maximum call stack")
HOSTILE = {
    "grow": ("let all = []; for (;;) all.push(new Array(10000).fill(all.length))", OUT_OF_MEMORY, NO_TIME),
    "buffer": ("let all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))", OUT_OF_MEMORY, NO_TIME),
    "string": ("let s = 'x'; for (;;) s += s + s", OUT_OF_MEMORY, NO_TIME, (422, "InternalError: string too long")),
    "loop": ("for (;;);", NO_TIME),
    "jobs": ("(function f() { Promise.resolve().then(f) })()", NO_TIME),
    "deep": ("(function f() { return f() + 1 })()", TOO_DEEP),
    "nested": ("JSON.parse('['.repeat(100000))", TOO_DEEP),
    "parser": ("eval('('.repeat(100000))", TOO_DEEP),
    "regexp": ("/^(a+)+$/.test('a'.repeat(40) + 'b')", NO_TIME, OUT_OF_MEMORY),
    "globals": ("for (let i = 0; ; i++) globalThis['g' + i] = i", OUT_OF_MEMORY, NO_TIME),
    "console": ("for (;;) console.log('x'.repeat(1000))", NO_TIME, OUT_OF_MEMORY),
    "reject": ("for (;;) Promise.reject(1)", NO_TIME, OUT_OF_MEMORY),
    "huge": ("new Array(4e9).fill(0)", OUT_OF_MEMORY, NO_TIME, (422, "RangeError"), (422, "InternalError")),
}


class Load(unittest.TestCase):
    def ordinary(self, tenant):
        connection = self.server.connect()
        done = 0
        while time.monotonic() < self.end:
            n = done % 50
            script = f"Array.from({{length: {n}}}, (_, i) => i * i).reduce((a, b) => a + b, 0)"
            answer = self.server.run(tenant, script, connection)
            if answer != (200, str(sum(i * i for i in range(n)))):
                self.wrong.append((tenant, script, answer))
            done += 1
        connection.close()
        self.runs[tenant] = done

    def hostile(self, tenant):
        connection = self.server.connect()
        done = 0
        while time.monotonic() < self.end:
            name = sorted(HOSTILE)[done % len(HOSTILE)]
            script, *allowed = HOSTILE[name]
            allowed += NO_ERROR if OUT_OF_MEMORY in allowed else []
            status, text = self.server.run(tenant, script, connection)
            if not any(status == code and text.startswith(begin) for code, begin in allowed):
                self.wrong.append((name, status, text[:100]))
            done += 1
        connection.close()
        self.runs[tenant] = done

    def passers_by(self):
        """Customers who come once, connections that are cut."""
        done = 0
        while time.monotonic() < self.end:
            answer = self.server.run(f"once{done}", "1")
            if answer != (200, "1"):
                self.wrong.append(("once", answer))
            self.server.raw(b"POST /run/once HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1", 0.01)
            done += 1
            time.sleep(0.02)

    def state(self):
        place = f"/proc/{self.server.process.pid}"
        with open(f"{place}/status") as f:
            text = f.read()
        own = int(re.search(r"RssAnon:\s+(\d+) kB", text)[1]) * 1024
        stats = self.server.stats()
        with open(f"{place}/maps") as f:
            mappings = sum(1 for _ in f)
        peaks = {labels: value for (name, labels), value in stats.items() if name == "wasm_linear_peak_bytes"}
        return {
            "own": own - stats[("wasm_warm_bytes", "")],
            "descriptors": len(os.listdir(f"{place}/fd")),
            "threads": int(re.search(r"Threads:\s+(\d+)", text)[1]),
            "mappings": mappings,
            "peak": max(peaks.values(), default=0),
        }

    def test_load(self):
        options = f"--memory={MEMORY_MIB}", "--time=100", "--customers=30"
        with Server(*options) as self.server:
            self.runs, self.wrong = {}, []
            self.end = time.monotonic() + SECONDS
            threads = [threading.Thread(target=self.ordinary, args=(t,)) for t in ("alice", "bob")]
            threads += [threading.Thread(target=self.hostile, args=(t,)) for t in ("mallory", "mordred")]
            threads.append(threading.Thread(target=self.passers_by))
            for thread in threads:
                thread.start()
            states = []
            while any(thread.is_alive() for thread in threads):
                states.append(self.state())
                time.sleep(max(SECONDS / 200, 0.1))
            for thread in threads:
                thread.join()
            self.assertEqual(self.wrong, [])
            for tenant in ("alice", "bob"):
                self.assertGreater(self.runs[tenant], 10)
                self.assertEqual(self.server.value("runs_total", tenant, ',outcome="ok"'), self.runs[tenant])
                self.assertEqual(self.server.value("linear_refused_total", tenant), 0)
            self.assertGreater(self.runs["mallory"], len(HOSTILE) // 2)
            # Never a byte over the limit.
            self.assertLessEqual(max(state["peak"] for state in states), MEMORY_MIB * MIB)
            # The first third has seen everything once; from then on nothing grows.
            third = len(states) // 3
            for name, slack in (("own", 16 * MIB), ("descriptors", 10), ("threads", 10), ("mappings", 60)):
                early = max(state[name] for state in states[: third + 1])
                late = min(state[name] for state in states[2 * third :])
                self.assertLessEqual(late, early + slack, name)
            # All are gone, and what each hostile one had.
            time.sleep(0.3)
            rest = self.state()
            self.assertEqual(self.server.run("zoe", "6 * 7"), (200, "42"))
            print(f"\n{SECONDS:g} s: {self.runs}; at the end {rest}")


if __name__ == "__main__":
    unittest.main()
