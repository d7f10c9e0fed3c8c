"""glibc's own tests of malloc under the shim: test_glibc.py SHIM FOLDER_OF_THE_PROGRAMS

What fails under the shim must fail without it, too. Left out, and not built:
  tst-malloc-backtrace, tst-safe-linking: what glibc says and does about its own damaged heap
  tst-malloc-usable, tst-malloc-usable-tunables, tst-mtrace, tst-mcheck: glibc's library for debugging
  tst-mallinfo2, tst-malloc_info, tst-mallopt, tst-mxfast, tst-malloc-stats-cancellation,
    tst-malloc-tcache-leak: figures and settings of glibc's heap, which nobody uses under the shim
  tst-mallocstate, tst-compathooks-*: interfaces that only programs of old have
  tst-alloc_buffer, tst-dynarray*, tst-scratch_buffer: containers inside glibc
  tst-interpose-static-*: programs that load nothing
"""

import concurrent.futures
import os

from shim import HELPERS, Case, main

# Those that others need: a free that is checked.
SETTINGS = {
    "tst-tcfree1": "check=abort",
    "tst-tcfree2": "check=abort",
    "tst-tcfree3": "check=abort",
}


class Glibc(Case):
    def status(self, name, settings):
        done = self.start([os.path.join(HELPERS, name)], settings, TMPDIR=self.dir)
        return done.returncode, done.stdout + done.stderr

    def test_suite(self):
        names = sorted(os.listdir(HELPERS))
        self.assertGreaterEqual(len(names), 27)
        self.assertLessEqual(set(SETTINGS), set(names))
        # Most of the time they sleep.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda name: self.status(name, SETTINGS.get(name, "")), names))
        for name, (under, output) in zip(names, results, strict=True):
            with self.subTest(name):
                if under not in (0, 77) and self.status(name, None)[0] == 0:
                    self.fail(f"{name} fails under the shim alone: {under}\n{output[-2000:]}")


if __name__ == "__main__":
    main()
