"""USDT probes of a host's own profile, in the program that HOST names: test_probes.cpp has its part."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import probes  # noqa: E402


@unittest.skipUnless(probes.there and os.uname().machine in ("x86_64", "aarch64"), "no debugger, or no probes on this system")
class Probes(unittest.TestCase):
    def test_a_debugger_stops_at_samples(self):
        seen = probes.stops([os.environ["HOST"], "[probes]"])
        if seen is None:
            self.skipTest("nothing may be traced here")
        sample, freed, text = seen
        self.assertIn("All tests passed", text)
        self.assertTrue(sample and freed, text)
        self.assertGreaterEqual(sample[1], 3000)
        self.assertEqual(sample[2], sample[1], "exact: it stands for itself")
        self.assertEqual(freed[0], sample[0])


if __name__ == "__main__":
    unittest.main()
