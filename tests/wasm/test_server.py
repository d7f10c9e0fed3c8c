#!/usr/bin/env python3
"""examples/wasm-server: scripts, limits, neighbours of a hostile tenant, statistics."""

import os
import re
import socket
import subprocess
import threading
import time
import unittest

from server_process import QUICKJS, SERVER, Server

SECONDS = float(os.environ.get("HAKMEM_SERVER_SECONDS", "3"))
WITHOUT_END = "let all = []; for (;;) all.push(new Array(10000).fill(all.length))"
NO_TIME = (408, "the script used up its CPU time")
MIB = 2**20


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--memory=8", "--time=300", kept=False)

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

    def test_clocks(self):
        first = int(self.server.run("cal", "Date.now()")[1]) / 1000
        self.assertLess(abs(first - time.time()), 60)
        time.sleep(0.02)
        self.assertGreater(int(self.server.run("cal", "Date.now()")[1]) / 1000, first)
        self.assertTrue(self.server.run("cal", "'' + new Date()")[1].endswith("GMT+0000"))
        # Begins with the script: nothing tells when the image was made, or how long the machine is up.
        seen = []
        for _ in range(5):
            time.sleep(0.2)
            now = "performance.timeOrigin === 0 && performance.now()"
            status, text = self.server.run("cal", now)
            self.assertEqual(status, 200)
            seen.append(float(text))
        self.assertGreater(min(seen), 0)
        self.assertLess(min(seen[1:]), 150)  # the fastest: a script may wait for a processor

    def test_every_script_has_random_numbers_of_its_own(self):
        draw = "JSON.stringify(Array.from({length: 4}, Math.random))"
        drawn = [self.server.run(name, draw)[1] for name in ("cas", "cyd") for _ in range(20)]
        numbers = [float(x) for text in drawn for x in text.strip("[]").split(",")]
        self.assertEqual(len(set(numbers)), 160)
        self.assertTrue(all(0 <= x < 1 for x in numbers))
        self.assertLess(abs(sum(numbers) / 160 - 0.5), 0.15)  # 6.5 standard deviations

    def test_maps_and_sets(self):
        script = """
            const m = new Map, s = new Set;
            const keys = [1, 1.5, "a", "b".repeat(99), {}, null, undefined, 7n, Symbol()];
            for (let i = 0; i < 5000; i++) m.set("k" + i, i), s.add(i * 0.5);
            for (const k of keys) m.set(k, k), s.add(k);
            let right = keys.every(k => m.get(k) === k && s.has(k)) && m.size === 5009;
            for (let i = 0; i < 5000; i++) right &&= m.get("k" + i) === i && s.has(i * 0.5);
            right"""
        for _ in range(5):
            self.assertEqual(self.server.run("col", script), (200, "true"))

    def test_promises(self):
        for script, answer in (
            ("Promise.resolve(4)", (200, "4")),
            ("await Promise.resolve(5) + 1", (200, "6")),
            ("(async () => { let n = 0; while (n < 1000) n += await 1; return n })()", (200, "1000")),
            ("globalThis.said = []; queueMicrotask(() => said.push(1)); said", (200, "1")),
            ("({then(f) { f(9) }, toString: () => 'thenable'})", (200, "thenable")),
            ("({value: 8, toString() { return 'o' + this.value }})", (200, "o8")),
            ("Promise.reject(new RangeError('far'))", (422, "RangeError: far")),
            ("await Promise.reject(new RangeError('far'))", (422, "RangeError: far")),
            ("async function f() { throw 8 } f(); 1", (422, "unhandled rejection: 8")),
            ("Promise.reject(7).finally(() => {}); 1", (422, "unhandled rejection: 7")),
            ("try { await Promise.reject(7) } catch (e) { 'caught ' + e }", (200, "caught 7")),
            ("const p = Promise.reject(3); await null; p.catch(() => {}); 2", (200, "2")),
            (
                "const all = Array.from({length: 2000}, (_, i) => Promise.reject(i));"
                "await null; all.forEach(p => p.catch(() => {})); all.length",
                (200, "2000"),
            ),
            (
                "await null; queueMicrotask(() => { throw new TypeError('late') }); 1",
                (422, "TypeError: late"),
            ),
        ):
            self.assertEqual(self.server.run("cyn", script), answer, script)
        for script in ("new Promise(() => {})", "await new Promise(() => {})"):
            status, text = self.server.run("cyn", script)
            self.assertEqual(status, 422, script)
            self.assertIn("nothing is left that could settle it", text)

    def test_values_that_are_no_text(self):
        for script, answer in (
            ("({toString() { throw new RangeError('no') }})", (422, "RangeError: no")),
            ("({toString() { throw {toString() { throw 1 }} }})", (422, "an exception that has no text")),
            ("Symbol('s')", (422, "TypeError: cannot convert symbol to string")),
            ("Object.create(null)", (422, "TypeError: toPrimitive")),
            ("throw {toString() { return 'thrown' }}", (422, "thrown")),
            ("throw undefined", (422, "undefined")),
        ):
            self.assertEqual(self.server.run("dee", script), answer, script)

    def test_output_is_sent_whole(self):
        for script, text in (
            ("'a\\0b\\0'", "a\0b\0"),
            ("'\\0'.repeat(1000)", "\0" * 1000),
            ("'\\ud800x\\udfff'", "\ufffdx\ufffd"),
            ("'\\u{1f600}\\u00e9'", "\U0001f600\u00e9"),
            ("throw 'a\\0b'", "a\0b"),
            ("'x'.repeat(65536)", "x" * 65536),
            # Cut at 64 KiB, between characters.
            ("'x'.repeat(70000)", "x" * 65536),
            ("'x' + '\\u20ac'.repeat(30000)", "x" + "\u20ac" * 21845),
            ("'\\ud800'.repeat(30000)", "\ufffd" * 21845),
        ):
            self.assertEqual(self.server.run("deb", script)[1], text, script)
        # As source text, too.
        self.assertEqual(self.server.run("deb", "'a\0b'.length"), (200, "3"))

    def test_time_limit(self):
        status, text = self.server.run("dan", "for (;;);")
        self.assertEqual((status, text), NO_TIME)
        # Whatever comes after the script counts as well: jobs, and the text of its value.
        self.assertEqual(
            self.server.run("dan", "Promise.resolve().then(function f() { for (;;); }); 1"), NO_TIME
        )
        self.assertEqual(self.server.run("dan", "(function f() { Promise.resolve().then(f) })()"), NO_TIME)
        self.assertEqual(self.server.run("dan", "({toString() { for (;;); }})"), NO_TIME)
        self.assertEqual(self.server.run("dan", "1"), (200, "1"))

    def test_deep_recursion(self):
        answer = self.server.run("eve", "(function f() { return f() + 1 })()")
        self.assertEqual(answer, (422, "RangeError: Maximum call stack size exceeded"))
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

    def test_page(self):
        status, text = self.server.ask("/")
        self.assertEqual(status, 200)
        # What the page asks for exists.
        self.server.run("hal", "1")
        names = {name for name, _ in self.server.stats()}
        asked = set(re.findall(r"wasm_\w+", text))
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - names, set())

    def test_statistics_are_prometheus_text(self):
        self.server.run("ida", "1")
        _, text = self.server.ask("/stats")
        declared = set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                self.assertRegex(line, r"^# TYPE wasm_\w+ (gauge|counter|histogram)$")
                declared.add(line.split()[2])
            elif not line.startswith("# HELP "):
                self.assertRegex(line, r'^wasm_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.]+$')
                name = re.match(r"\w+", line)[0]
                self.assertIn(re.sub(r"^(wasm_run_seconds)_(bucket|sum|count)$", r"\1", name), declared)
        stats = self.server.stats()
        labels = sum(
            value
            for (name, of), value in stats.items()
            if name == "wasm_heap_label_bytes" and 'tenant="ida"' in of
        )
        self.assertEqual(labels, stats[("wasm_heap_bytes", 'tenant="ida"')])
        self.assertGreater(labels, 1000)
        # The guests that wait share the image's pages with all others.
        kinds = ("resident", "proportional")
        own, shared = (stats[(f"wasm_linear_{kind}_bytes", 'tenant="ida"')] for kind in kinds)
        self.assertGreater(shared, own)


class Limits(unittest.TestCase):
    def test_idle_customers_are_retired(self):
        with Server("--customers=3", "--time=20000") as server:
            for name in ("a", "b", "c", "a"):
                self.assertEqual(server.run(name, "1")[0], 200)

            def names():
                return {labels for name, labels in server.stats() if name == "wasm_instances"}

            def named(*all):
                return {f'tenant="{name}"' for name in all}

            self.assertEqual(names(), named("a", "b", "c"))
            self.assertEqual(server.run("d", "1"), (200, "1"))
            self.assertEqual(names(), named("a", "c", "d"))  # b had waited longest
            # What b came to is not lost.
            stats = server.stats()
            self.assertEqual(stats[("wasm_customers", "")], 3)
            self.assertEqual(stats[("wasm_customers_retired_total", "")], 1)
            self.assertEqual(stats[("wasm_retired_runs_total", 'outcome="ok"')], 1)
            self.assertGreater(stats[("wasm_retired_cpu_seconds_total", "")], 0)
            for i in range(300):
                self.assertEqual(server.run(f"n{i}", "1"), (200, "1"))
            stats = server.stats()
            self.assertEqual(stats[("wasm_customers_retired_total", "")], 301)
            self.assertEqual(names(), named("n297", "n298", "n299"))
            # Who comes back begins anew.
            self.assertEqual(server.run("a", "1"), (200, "1"))
            self.assertEqual(server.value("runs_total", "a", ',outcome="ok"'), 1)

    def test_customers_with_scripts_are_not_retired(self):
        with Server("--customers=2", "--time=3000") as server:
            slow = [threading.Thread(target=server.run, args=(name, "for (;;);")) for name in ("a", "b")]
            for thread in slow:
                thread.start()
            while server.stats()[("wasm_customers", "")] != 2:
                time.sleep(0.01)
            answer = server.run("c", "1")
            self.assertTrue(all(thread.is_alive() for thread in slow))
            for thread in slow:
                thread.join()
            self.assertEqual(answer, (503, "too many customers, and all have scripts that run"))
            self.assertEqual(server.run("c", "1"), (200, "1"))

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
        for wrong in (
            ["--port=x"],
            ["--memory=0"],
            ["--absent"],
            ["--connections=0"],
            ["--per-address=0"],
            ["--deadline=1"],
            ["--processors=0"],
            ["a", "b"],
        ):
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
            if answer not in ((422, "InternalError: out of memory"), NO_TIME):
                self.wrong.append(("mallory", answer))
            done += 1
        connection.close()
        self.runs["mallory"] = done

    def test_neighbours(self):
        with Server("--memory=16", "--time=10000") as self.server:
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
                self.assertLess(self.slowest.get(tenant, 0), 5, tenant)
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
