"""The servers of docs/guide/servers.md, as the page has them but for ports and paths."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "preload"))
from shim import SHIM, Server, main  # noqa: E402

sys.path.append(os.path.join(HERE, "..", "support"))
from waiting import until  # noqa: E402

__all__ = ["Guided", "main", "until"]
PAGE = os.path.join(HERE, "../../docs/guide/servers.md")


class Guided(Server):
    def block(self, kind, name, replace=()):
        """A block of the page; each pair of `replace` must be in it."""
        with open(PAGE) as file:
            text = re.search(rf"^```{kind} {re.escape(name)}\n(.*?)^```$", file.read(), re.M | re.S)[1]
        for old, new in replace:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    def run_page(self, name, replace, socket, preload=True, **env):
        """The server of the page's command."""
        if preload:
            replace = [("/opt/hakmem/lib/libhakmem-preload.so", SHIM), *replace]
        command = self.block("sh", name, replace)
        return self.serve(["sh", "-c", re.sub(r"^((?:\w+=\S+ )*)", r"exec env \1", command)], socket, None, **env)

    def children(self, process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return set(map(int, file.read().split()))
