"""Buffers of megabytes that come again stay in memory, and go back when they are wanted no more."""

import unittest

from support import ProgramCase, plain_environment, preloaded

FAULTS = """
import json, resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def rounds(n):
    for _ in range(n):
        WORK
rounds(8)
start = faults()
rounds(20)
print(json.dumps(faults() - start))
"""

WORK = {
    "one size": "bytearray(2_400_000)",
    "16 MB": "bytearray(16_000_000)",
    "30 MB": "bytearray(30_000_000)",
    "in turn": "bytearray(2_400_000); bytearray(16_000_000); bytearray(5_000_000)",
    "at once": "a = bytearray(2_400_000); b = bytearray(2_400_000); c = [None] * 600_000; del a, b, c",
    "list, str and bytearray": "[None] * 2_000_000; b'x' * 16_000_000; bytearray(16_000_000)",
    "a list that grows": "a = [None] * 10; [a.append(None) for _ in range(500_000)]; del a",
    "threads": (
        "t = [threading.Thread(target=lambda: [bytearray(2_400_000) for _ in range(20)][:0]) for _ in '12'];"
        "[x.start() for x in t]; [x.join() for x in t]"
    ),
}

# Resident memory after buffers were freed, and after 3 s of other work.
LATER = """
import json, time
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
for _ in range(20):
    bytearray(30_000_000)
after = resident()
end = time.monotonic() + 3
while time.monotonic() < end:
    kept = [[str(i) * 200] for i in range(500)]
print(json.dumps([after, resident()]))
"""


class Recurrence(ProgramCase):
    def faults(self, work, env):
        return self.run_code("import threading\n" + FAULTS.replace("WORK", work), env=env)

    def test_pages_of_recurring_buffers_stay(self):
        for name, work in WORK.items():
            plain = self.faults(work, plain_environment())
            for all_domains in (False, True):
                with self.subTest(name, all_domains=all_domains):
                    mine = self.faults(work, preloaded(all_domains=all_domains))
                    self.assertLess(mine, max(1.1 * plain, 600), "plain: %d" % plain)

    def test_what_is_wanted_no_more_goes_back_while_the_program_runs(self):
        for all_domains in (False, True):
            with self.subTest(all_domains=all_domains):
                after, later = self.run_code(LATER, all_domains=all_domains)
                self.assertGreater(after - later, 25)


if __name__ == "__main__":
    unittest.main()
