"""USDT probes of samples: the notes in the library, what a debugger sees of them, and what a tracer gets."""

import json
import os
import re
import subprocess

from shim import HELPERS, PYTHON, SHIM, Case, main

TRACER = os.path.join(HELPERS, "preload_probes")


class Probes(Case):
    def test_notes_in_the_library(self):
        self.need("readelf")
        text = subprocess.run(["readelf", "-n", SHIM], capture_output=True, text=True, check=True).stdout
        notes = re.findall(
            r"Provider: (\S+)\s+Name: (\S+)\s+Location: (0x\w+), Base: (0x\w+), Semaphore: (0x\w+)\s+Arguments: (.*)", text
        )
        self.assertEqual(sorted(note[:2] for note in notes), [("otel_memory", "alloc"), ("otel_memory", "free")])
        for _, name, location, base, semaphore, arguments in notes:
            self.assertEqual(len(arguments.split()), {"alloc": 3, "free": 1}[name])
            self.assertTrue(all(argument.startswith("8@") for argument in arguments.split()), arguments)
            self.assertTrue(all(int(number, 16) for number in (location, base, semaphore)))
        self.assertEqual(len({note[4] for note in notes}), 2, "a semaphore each")
        # Where a section lies for which the notes have an address is how readers know that the file was moved.
        sections = subprocess.run(["readelf", "-SW", SHIM], capture_output=True, text=True, check=True).stdout
        (base,) = re.findall(r"\.stapsdt\.base\s+PROGBITS\s+(\w+)", sections)
        self.assertEqual({int(note[3], 16) for note in notes}, {int(base, 16)})

    def test_a_tracer_gets_what_is_sampled_while_it_is_there(self):
        done = self.start([TRACER], "probes=on,rate=4K")
        if done.returncode == 77:
            self.skipTest("no breakpoints of this kind here")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        told = json.loads(done.stdout)
        self.assertEqual(told["idle"], 0, "the semaphore was 0")
        self.assertEqual(told["after"], 0, "and is again")
        samples = told["truth"] / 4096
        self.assertGreater(told["hits"], samples / 2)
        self.assertLess(told["hits"], samples * 2)
        self.assertGreaterEqual(told["smallest"], 100)
        # The blocks are a little larger than what was asked for; a standard error is sqrt(samples) of them.
        self.assertLess(abs(told["weight"] - told["truth"]), 0.25 * told["truth"])
        self.assertEqual(told["frees"], told["hits"], "each sample was freed")
        self.assertLess(told["unknown"], 10)  # what was sampled before

    def test_each_block_of_an_exact_profile(self):
        done = self.start([TRACER], f"profile={self.path('p')},rate=exact")
        if done.returncode == 77:
            self.skipTest("no breakpoints of this kind here")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        told = json.loads(done.stdout)
        self.assertEqual(told["hits"], 20000, "all that the tracer keeps")

    def test_without_a_profile_there_is_nothing_to_tell(self):
        done = self.start([TRACER], "")
        if done.returncode == 77:
            self.skipTest("no breakpoints of this kind here")
        told = json.loads(done.stdout)
        self.assertEqual([told[what] for what in ("idle", "hits", "frees", "unknown")], [0] * 4)

    def test_a_debugger_sees_them(self):
        self.need("gdb")
        gdb = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex"]
        text = subprocess.run([*gdb, "info probes stap otel_memory", SHIM], capture_output=True, text=True, timeout=120).stdout
        found = re.findall(r"^(?:stap +)?otel_memory +(\w+) +0x\w+ +0x(\w+)", text, re.M)
        self.assertEqual(sorted(name for name, _ in found), ["alloc", "free"], text)
        # It adds 1 to the semaphore while it has a breakpoint there.
        code = "kept = [bytearray(3000) for _ in range(10000)]"
        script = [
            "set breakpoint pending on",
            f"set exec-wrapper env LD_PRELOAD={SHIM} HAKMEM=probes=on,rate=16K",
            "break -probe-stap otel_memory:alloc",
            "run",
            'printf "argument %lu %lu\\n", $_probe_arg1, $_probe_arg2',
            "kill",
        ]
        words = [word for line in script for word in ("-ex", line)]
        done = subprocess.run(
            ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *words, "--args", PYTHON, "-S", "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment(),
        )
        if re.search(r"ptrace|Operation not permitted", done.stdout + done.stderr):
            self.skipTest("nothing may be traced here")
        told = re.search(r"^argument (\d+) (\d+)$", done.stdout, re.M)
        self.assertTrue(told, done.stdout + done.stderr)
        self.assertGreater(int(told[1]), 0)
        self.assertGreaterEqual(int(told[2]), int(told[1]))

    def test_settings(self):
        done = self.start(["/bin/true"], "probes=maybe")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'probes=maybe': on or off expected; the program is not started", done.stderr)
        done = self.start(["/bin/true"], "probes=off,rate=4K")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.start(["/bin/true"], "probes=on,rate=4K,window=5m").returncode, 0)
        self.assertEqual(os.listdir(self.dir), [], "nothing is written")


if __name__ == "__main__":
    main()
