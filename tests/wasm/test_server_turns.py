#!/usr/bin/env python3
"""examples/wasm-server: limits in CPU time, turns by customer, the end while scripts run.

Whatever is compared is CPU time as the server counts it: what else the machine does should not matter.
"""

import contextlib
import signal
import threading
import time
import unittest

from server_process import Server

LOOP = "for (;;);"
NO_TIME = (408, "the script used up its CPU time")
ENDED = (503, "the server ends")


def cpu(server, tenant):
    return server.stats().get(("wasm_cpu_seconds_total", f'tenant="{tenant}"'), 0)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.01)


def script_of(server, seconds):
    """A script of about that much CPU time."""
    rounds = 200000
    while True:
        script = f"for (let i = 0; i < {rounds}; i++); 'done'"
        before = cpu(server, "measure")
        if server.run("measure", script) != (200, "done"):
            raise AssertionError("the limit is too low")
        used = cpu(server, "measure") - before
        if used > seconds / 8:
            return f"for (let i = 0; i < {int(rounds * seconds / used)}; i++); 'done'"
        rounds *= 2


@contextlib.contextmanager
def loops(server, tenant, count, answers):
    """So many scripts without end at a time, until the server ends."""
    end = threading.Event()

    def client():
        connection = server.connect()
        while not end.is_set():
            answers.append(server.run(tenant, LOOP, connection))
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: cpu(server, tenant) > 0.3)
        yield
    finally:
        end.set()
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()


class Turns(unittest.TestCase):
    def test_endless_loops_of_one_do_not_make_scripts_of_another_fail(self):
        for options in ((), ("--processors=1",)):
            with Server(*options) as server:
                script = script_of(server, 0.07)
                looped = []
                with loops(server, "a", 8, looped):
                    answers = [server.run("b", script) for _ in range(10)]
                self.assertEqual(answers, [(200, "done")] * 10, options)
                self.assertLessEqual(set(looped), {NO_TIME, ENDED})

    def test_the_limit_is_cpu_time(self):
        with Server("--time=100") as server:
            before = cpu(server, "a")
            for _ in range(5):
                self.assertEqual(server.run("a", LOOP), NO_TIME)
            used = (cpu(server, "a") - before) / 5
            self.assertGreater(used, 0.099)
            self.assertLess(used, 0.2)

    def test_turns_are_by_customer(self):
        with Server("--processors=1", "--time=3000") as server:
            script = script_of(server, 1)
            looped = []
            with loops(server, "a", 8, looped):
                before = cpu(server, "a")
                self.assertEqual(server.run("b", script), (200, "done"))
                others = cpu(server, "a") - before
                own = cpu(server, "b")
            # By script, it would be eight times as much.
            self.assertLess(others, 2.5 * own)

    def test_scripts_of_a_customer_alternate(self):
        with Server("--processors=1", "--time=20000") as server:
            loop = threading.Thread(target=server.run, args=("a", LOOP))
            loop.start()
            wait_for(lambda: cpu(server, "a") > 0)
            for _ in range(3):
                self.assertEqual(server.run("a", "1"), (200, "1"))
            self.assertTrue(loop.is_alive())
            used = cpu(server, "a")
            server.process.send_signal(signal.SIGTERM)
            loop.join()
            self.assertLess(used, 19)


class End(unittest.TestCase):
    def run_until_the_end(self, server, script, count=1):
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(server.run("a", script))) for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: cpu(server, "a") > 0 and server.value("instances", "a") >= count)
        before = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        self.assertEqual(server.process.wait(30), 0)
        self.assertLess(time.monotonic() - before, 30)
        return answers

    def test_scripts_that_run_are_ended(self):
        # Some in the middle, some that wait for their first turn.
        with Server("--time=60000", "--processors=1") as server:
            answers = self.run_until_the_end(server, LOOP, 6)
        self.assertEqual(answers, [ENDED] * 6)

    def test_short_scripts_may_finish(self):
        with Server("--time=60000") as server:
            script = script_of(server, 0.3)
            answers = self.run_until_the_end(server, script)
        self.assertEqual(answers, [(200, "done")])

    def test_idle_connections_do_not_hold_the_end(self):
        with Server() as server:
            connections = [server.connect() for _ in range(20)]
            for connection in connections:
                self.assertEqual(server.run("a", "1", connection), (200, "1"))
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(20), 0)
            for connection in connections:
                connection.close()


if __name__ == "__main__":
    unittest.main()
