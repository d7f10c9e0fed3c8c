"""The launchers with another release of the runtime than the one that they were built with:

    test_release.py haklua5.4 LUA_H      the headers of that release
    test_release.py hakluajit            its interpreter `luajit` lies beside the library

LD_LIBRARY_PATH has the library.
"""

import os
import re
import subprocess
import sys
import unittest

from outside import FolderCase, environment

PROGRAM = os.path.abspath(sys.argv.pop(1))
HEADER = sys.argv.pop(1) if len(sys.argv) > 1 else None
LUAJIT = HEADER is None


class Case(FolderCase):
    def start(self, program, *args):
        return subprocess.run(
            ["interpreter", *args],
            executable=program,
            capture_output=True,
            text=True,
            cwd=self.dir,
            env=environment(LUA_PATH="?.lua"),
            timeout=120,
        )


@unittest.skipIf(LUAJIT, "of PUC Lua")
class Puc(Case):
    def release(self):
        with open(HEADER) as f:
            return int(re.search(r'define LUA_VERSION_RELEASE\s+"(\d+)"', f.read()).group(1))

    def test_version(self):
        with open(HEADER) as f:
            years = re.search(r'"  (Copyright.*)"', f.read()).group(1)
        self.assertEqual(self.start(PROGRAM, "-v").stdout, f"Lua 5.4.{self.release()}  {years}\n")

    def test_messages(self):
        self.write("x.lua", "")
        code = "setmetatable(_G, { __newindex = function() error({}) end })"
        text = "(error message not a string)" if self.release() >= 7 else "(null)"
        self.assertEqual(self.start(PROGRAM, "-e", code, "-lx").stderr, f"interpreter: {text}\n")

    def test_libraries_with_a_hyphen(self):
        self.write("a-b.lua", "return 7")
        out = self.start(PROGRAM, "-l", "a-b", "-e", "print(a, _G['a-b'])").stdout
        self.assertEqual(out, "7\tnil\n" if self.release() >= 7 else "nil\t7\n")


FINALIZERS = """
local ffi = require "ffi"
local function garbage(final)
    getmetatable(newproxy(true)).__gc = final
    collectgarbage()
end
garbage(function() error("in a finalizer") end)
garbage(function() error({}) end)
ffi.gc(ffi.new("int[2]"), function() error("of cdata") end)
local kept = {}
for i = 1, 1e5 do
    kept[i % 1000] = { kept }
    if i % 50000 == 0 then getmetatable(newproxy(true)).__gc = function() error("in compiled code " .. i) end end
end
collectgarbage()
AT_THE_END = newproxy(true)
getmetatable(AT_THE_END).__gc = function() error("while the state is closed") end
print("end")
"""

@unittest.skipUnless(LUAJIT, "of LuaJIT")
class Jit(Case):
    def test_errors_of_finalizers(self):
        self.write("a.lua", FINALIZERS)
        stock = os.path.join(os.environ["LD_LIBRARY_PATH"].split(":")[0], "luajit")
        theirs = self.start(stock, "a.lua")
        self.assertEqual((theirs.returncode, theirs.stderr.count("ERROR in finalizer: ")), (0, 6))
        ours = self.start(PROGRAM, "a.lua")
        self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (0, theirs.stdout, theirs.stderr))
        profiled = self.start(PROGRAM, "--hak-profile=profile.json,lines", "--hak-limit=64M", "a.lua")
        self.assertEqual((profiled.returncode, profiled.stderr), (0, theirs.stderr))

    def test_version(self):
        version = self.start(PROGRAM, "-e", "io.write(jit.version)").stdout
        self.assertTrue(self.start(PROGRAM, "-v").stdout.startswith(version + " -- Copyright (C) 2005-"))


if __name__ == "__main__":
    unittest.main()
