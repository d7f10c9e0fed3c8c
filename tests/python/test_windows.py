"""Windows of profiles that the clock begins."""

import sys
import unittest

import test_profile
from support import needs_objects, preloaded


class Clock(test_profile.ProfileCase):
    @needs_objects
    def test_windows_by_the_clock(self):
        text = """
import time
kept = []
def keep():
    kept.append(bytearray(200000))
for i in range(40):
    some = [bytearray(100000) for _ in range(50)]
    for _ in range(10): keep()
    time.sleep(0.05)
"""
        path = self.script(text)
        self.hakmem("run", "--all", "--profile=16K", "--profile-window", "100ms", "--report", "r.json", path)
        (context,) = self.loaded("r.json")["contexts"]
        self.assertIn(context["profile"]["window_ns"], [100_000_000 << n for n in range(8)])  # twice as long once there are 32
        self.assertGreaterEqual(len(context["marks"]), 8)
        self.assertTrue(any(sum(h["kept"]) > 40 << 20 for h in context["histories"]))
        shown = self.hakmem("report", "r.json").stdout
        self.assertRegex(shown, r"\n  (LEAK\?|grows|fills): keep \([^\n]*:5\), (mem|obj): grew by about ")
        self.hakmem("run", "--all", "--profile=16K", "--report", "r.json", path := self.script("pass"))
        self.assertEqual(self.loaded("r.json")["contexts"][0]["profile"]["window_ns"], 60 * 10**9)
        self.hakmem("run", "--all", "--profile", "--profile-window=off", "--report", "r.json", path)
        self.assertNotIn("window_ns", self.loaded("r.json")["contexts"][0]["profile"])
        self.assertIn("export HAKMEM_PROFILE_WINDOW=5m\n", self.hakmem("env", "--profile", "--profile-window=5m").stdout)

    @needs_objects
    def test_windows_of_what_c_code_maps(self):
        text = """
import mmap, time
kept, objects = [], []
def grow():
    kept.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE))
    for at in range(0, 1 << 20, 4096): kept[-1][at] = 1
start = time.monotonic()
while len(kept) < 50:  # evenly by the clock, on a busy machine too
    while len(kept) < 50 and time.monotonic() - start >= 0.03 * len(kept): grow()
    objects = [bytearray(1000) for _ in range(200)]
    time.sleep(0.005)
"""
        self.hakmem("run", "--all", "--profile=16K", "--profile-window", "100ms", "--report", "r.json", self.script(text))
        _, mapped = self.loaded("r.json")["contexts"]
        live = [mark["live_bytes"] for mark in mapped["marks"]]
        self.assertGreaterEqual(len(live), 6)
        self.assertEqual(live, sorted(live))
        self.assertGreater(live[-1], 20 << 20)
        self.assertIn("leak", [verdict["kind"] for verdict in mapped["verdicts"]])
        shown = self.hakmem("report", "r.json").stdout
        if sys.version_info < (3, 15):  # there the module mmap lets go of the GIL, and nobody may look at Python's frames
            self.assertRegex(shown, r"\n  LEAK\?: grow \([^\n]*:5\), mmap[^\n]*: grew by ")
        self.hakmem("run", "--all", "--profile=16K", "--profile-window=off", "--report", "r.json", self.script(text))
        self.assertNotIn("marks", self.loaded("r.json")["contexts"][1])

    @needs_objects
    def test_windows_of_a_program_take_the_place_of_the_clock_s(self):
        text = """
import hakmem, time
hakmem.profile.start("exact", window=0.05)
kept = []
for _ in range(10):
    kept += [bytearray(1000) for _ in range(100)]
    time.sleep(0.02)
assert len(hakmem.profile.marks()) >= 2, hakmem.profile.marks()
assert hakmem.profile.mark("one") == 1 and hakmem.profile.mark("two") == 2
assert [m.name for m in hakmem.profile.marks()] == ["one", "two"]
for wrong in (-1, 0.0001, float("nan"), 1e9):
    try: hakmem.profile.start(window=wrong)
    except ValueError: pass
    else: raise AssertionError(wrong)
"""
        self.run_script(text, "--all", "--report", "")

    def test_wrong_windows(self):
        for window in ("x", "0", "-1", "5x"):
            done = self.hakmem("run", "--profile", "--live", f"--profile-window={window}", self.script(""), check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--profile-window", done.stderr)
        done = self.hakmem("run", "--profile-window=5s", self.script(""), check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "hakmem: --profile-window needs --profile: there are windows in profiles alone\n"))
        for variables, why in (({"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_WINDOW": "5x"}, "5x: is no time"),
                               ({"HAKMEM_PROFILE_WINDOW": "5s"}, "5s: there is no profile")):
            done = self.python("-c", "print(5)", env=preloaded(all_domains=True) | variables, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^hakmem: HAKMEM_PROFILE_WINDOW={why}[^\n]*; Python is not started\n$")


if __name__ == "__main__":
    unittest.main()
