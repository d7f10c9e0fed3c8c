"""USDT probes of a host's own profile, in the program that HOST names: test_probes.cpp has its part."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import probes  # noqa: E402


@unittest.skipUnless(probes.there and os.uname().machine in ("x86_64", "aarch64"), "no debugger, or no probes on this system")
class Probes(unittest.TestCase):
    def test_a_debugger_stops_at_samples(self):
        probes.exact_sample(self, [os.environ["HOST"], "[probes]"])


if __name__ == "__main__":
    unittest.main()
