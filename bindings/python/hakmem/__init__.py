"""Exact memory accounts, limits and trimming for CPython."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hakmem._public import *  # noqa: F403
    from hakmem._public import __version__ as __version__


def _load():
    from hakmem import _public

    globals().update({name: getattr(_public, name) for name in _public.__all__}, __all__=_public.__all__)


def load_ipython_extension(shell):
    """%load_ext hakmem"""
    from hakmem import _ipython

    _ipython.load(shell)


def __getattr__(name):
    # Modules of the package are looked for here before they are imported.
    if "__all__" not in globals() and (not name.startswith("_") or name in ("__all__", "__version__")):
        _load()
        return globals()[name] if name in globals() else __getattr__(name)
    raise AttributeError(f"module 'hakmem' has no attribute '{name}'")


# The command starts programs, and is to be quick: `python -m`, or by its name. Everybody else has all of it
# now: what is measured later has no part of that.
if (getattr(sys, "argv", None) or [""])[0].rpartition("/")[2] not in ("-m", "hakmem"):
    _load()
