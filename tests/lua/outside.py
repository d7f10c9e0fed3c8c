"""What the tests of Lua programs from the outside share."""

import os
import shutil
import tempfile
import unittest


def environment(**more):
    """This process's without what interpreters of Lua read, and with `more`."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith("LUA_")}, **more}


class FolderCase(unittest.TestCase):
    """Each test has a folder of its own, self.dir."""

    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return path
