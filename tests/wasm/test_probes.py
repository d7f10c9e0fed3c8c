"""USDT probes of a tenant's profile, in the program that TENANTS names."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import probes  # noqa: E402


@unittest.skipUnless(probes.there and os.uname().machine in ("x86_64", "aarch64"), "no debugger, or no probes on this system")
class Probes(unittest.TestCase):
    def stops(self, case):
        seen = probes.stops([os.environ["TENANTS"], case])
        if seen is None:
            self.skipTest("nothing may be traced here")
        self.assertIn("All tests passed", seen[2])
        return seen

    def test_a_debugger_stops_at_samples(self):
        sample, freed, text = self.stops("samples of a profile are told*")
        self.assertTrue(sample and freed, text)
        self.assertGreaterEqual(sample[1], 3000)
        self.assertEqual(sample[2], sample[1], "exact: it stands for itself")
        self.assertEqual(freed[0], sample[0])

    def test_a_host_that_listens_itself_has_the_samples(self):
        self.assertEqual(self.stops("a host's own functions*")[:2], (None, None))


if __name__ == "__main__":
    unittest.main()
