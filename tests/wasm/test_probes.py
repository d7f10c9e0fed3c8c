"""USDT probes of a tenant's profile, in the program that TENANTS names."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import probes  # noqa: E402


@unittest.skipUnless(probes.there and os.uname().machine in ("x86_64", "aarch64"), "no debugger, or no probes on this system")
class Probes(unittest.TestCase):
    def test_a_debugger_stops_at_samples(self):
        probes.exact_sample(self, [os.environ["TENANTS"], "samples of a profile are told*"])

    def test_a_host_that_listens_itself_has_the_samples(self):
        seen = probes.stops([os.environ["TENANTS"], "a host's own functions*"])
        if seen is None:
            self.skipTest("nothing may be traced here")
        self.assertIn("All tests passed", seen[2])
        self.assertEqual(seen[:2], (None, None))


if __name__ == "__main__":
    unittest.main()
