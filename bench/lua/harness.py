"""What the Lua tools share: the engines and how a result names them."""

import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for the tools that import this, too

from driver import machine, tool  # noqa: E402

ENGINES = {"luajit": "LuaJIT", "lua5.4": "PUC Lua 5.4"}


def description(cpu, engines, build):
    versions = {"libc": " ".join(platform.libc_ver())}
    for engine in engines:
        for allocator in ("builtin", "hak", "mimalloc"):
            host = tool.built(build, f"lua_host_{engine}_{allocator}")
            if host:
                versions[engine], versions[allocator] = machine.output(str(host), "--version").splitlines()
    return tool.about(versions, cpu)


def caption(about):
    versions = about["versions"]
    return tool.caption(about, versions.get("hak"), *(versions[e] for e in ENGINES if e in versions))
