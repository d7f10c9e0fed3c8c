#!/usr/bin/env python3
"""test_server.py PROGRAM GUEST: the example server of hakmem-wasmtime: answers, isolation, limits, a hostile
customer beside others, and figures that come back to where they were."""
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

PROGRAM, GUEST = sys.argv[1:3]
MIB = 1 << 20
LIMIT = 16 * MIB


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([PROGRAM, GUEST], stdout=subprocess.PIPE, text=True)
        line = cls.process.stdout.readline()
        cls.address = "http://" + re.fullmatch(r"listening on (\S+)\n", line).group(1)

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()
        cls.process.stdout.close()

    def ask(self, path, method="POST"):
        try:
            request = urllib.request.Request(self.address + path, method=method)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode().strip()

    def stats(self):
        found = {}
        for line in self.ask("/stats", "GET")[1].splitlines():
            name, *figures = line.split()
            found[name] = {key: int(value) for key, value in (figure.split("=") for figure in figures)}
        return found

    def test_each_request_has_a_guest_like_the_snapshot(self):
        fresh = self.ask("/call/alice/hidden/0")
        self.assertEqual(fresh[0], 200)
        for n in range(20):
            self.assertEqual(self.ask(f"/call/alice/put/{n + 1}"), (200, ""))
            self.assertEqual(self.ask("/call/alice/hide/0"), (200, ""))
            self.assertEqual(self.ask("/call/alice/get/0"), (200, "0"))
            self.assertEqual(self.ask("/call/alice/global/0"), (200, "7"))
            self.assertEqual(self.ask("/call/alice/hidden/0"), fresh)
        self.assertEqual(self.ask("/call/alice/outside/0")[0], 422)
        self.assertEqual(self.ask("/call/alice/deep/0")[0], 422)
        self.assertEqual(self.ask("/call/alice/get/0"), (200, "0"))

    def test_requests_that_cannot_be(self):
        self.assertEqual(self.ask("/call/alice/nothing/0"), (404, "no function nothing"))
        self.assertEqual(self.ask("/call/alice/hak:function:0/0")[0], 404)
        self.assertEqual(self.ask("/call/Alice/get/0")[0], 400)
        self.assertEqual(self.ask("/call/alice/get/many")[0], 400)
        self.assertEqual(self.ask("/nothing")[0], 404)

    def test_a_request_that_loops_ends_and_others_are_served(self):
        begun = time.monotonic()
        code, text = self.ask("/call/eve/spin/0")
        self.assertEqual((code, "the call has run for as long as its tenant may" in text), (504, True), text)
        self.assertGreaterEqual(time.monotonic() - begun, 0.5)
        # As many at once as its guests, twice as many customers as the server has threads.
        ended = []
        loops = [threading.Thread(target=lambda path=f"/call/eve{n}/spin/0": ended.append(self.ask(path)[0]))
                 for n in range(8) for _ in range(4)]
        for thread in loops:
            thread.start()
        served = 0
        while not ended:
            self.assertEqual(self.ask("/call/bob/put/5"), (200, ""))
            self.assertEqual(self.ask("/call/bob/get/0"), (200, "0"))
            served += not ended
        self.assertGreater(served, 1)
        for thread in loops:
            thread.join()
        self.assertEqual(set(ended), {504})
        self.assertEqual(self.ask("/call/eve0/put/1"), (200, ""))
        self.assertEqual(self.ask("/call/eve0/get/0"), (200, "0"))
        self.assertEqual(self.stats()["eve0"]["refused"], 0)

    def test_a_hostile_customer_stays_within_its_limit_and_others_are_served(self):
        stop, wrong = threading.Event(), []

        def attack(path, codes):
            while not stop.is_set():
                code, _ = self.ask(path)
                if code not in codes:
                    wrong.append((path, code))

        # Memory that grows to the limit ends with its request, so that some requests find no room.
        ways = ["grow/100", "grow/90", "grow/60000", "widen/2147483647", "widen/100000", "deep/0", "hide/0"]
        codes = {200, 422, 503, 507}
        hostile = [threading.Thread(target=attack, args=(f"/call/mallory/{way}", codes)) for way in ways]
        for thread in hostile:
            thread.start()
        end = time.monotonic() + 3
        served = 0
        try:
            while time.monotonic() < end:
                self.assertEqual(self.ask("/call/bob/put/5"), (200, ""))
                self.assertEqual(self.ask("/call/bob/get/0"), (200, "0"))
                for name, figures in self.stats().items():
                    self.assertLessEqual(figures["linear_bytes"], LIMIT, name)
                    self.assertLessEqual(figures["peak"], LIMIT, name)
                    self.assertLessEqual(figures["instances"], 4, name)
                served += 1
        finally:
            stop.set()
            for thread in hostile:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertGreater(served, 0)
        self.assertGreater(self.stats()["mallory"]["refused"], 0)
        self.assertEqual(self.stats()["bob"]["refused"], 0)
        # What is left are two guests that wait, with their stacks, and their pages have gone.
        self.assertEqual(self.ask("/call/mallory/put/1"), (200, ""))
        time.sleep(3)
        figures = self.stats()["mallory"]
        self.assertLessEqual(figures["instances"], 2)
        self.assertLessEqual(figures["linear_bytes"], 2 * (2 * MIB + 2 * 65536 + 100))
        # Of the stacks what recursion has touched stays, of the memories nothing.
        self.assertLessEqual(figures["resident"], 2 * MIB)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
