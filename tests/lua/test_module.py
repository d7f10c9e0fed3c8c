"""The module in an interpreter of the system: test_module.py INTERPRETER DIRECTORY [LD_PRELOAD]"""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from outside import FolderCase, environment  # noqa: E402
from sizes import SIZES  # noqa: E402

INTERPRETER, DIRECTORY = sys.argv[1:3]
PRELOAD = sys.argv[3] if len(sys.argv) > 3 else ""
SKIP = 77
WHOLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "whole.lua")
WHOLE_RESULT = "5343743"

FIELDS = [
    "live_bytes",
    "live_blocks",
    "peak_bytes",
    "committed_bytes",
    "metadata_bytes",
    "cached_bytes",
    "released_bytes",
    "reserved_bytes",
    "retained_bytes",
    "big_bytes",
    "big_blocks",
    "soft_limit",
    "hard_limit",
    "failures",
    "os_calls",
]


class Module(FolderCase):
    def start(self, code, *args):
        env = environment(LUA_CPATH=os.path.join(DIRECTORY, "?.so"))
        if PRELOAD:
            env["LD_PRELOAD"] = PRELOAD
        path = self.write("script.lua", code)
        return subprocess.run(
            [INTERPRETER, *args, path], capture_output=True, text=True, cwd=self.dir, env=env, timeout=120
        )

    def check(self, code, expected, *args):
        done = self.start(code, *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.strip(), expected)

    def error(self, code):
        """The message of an error in code, which runs with h as the module."""
        done = self.start("local h = require('hakmem') " + code)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.split("\n")[0]

    def test_adoption_with_options(self):
        self.check("local h = require 'hakmem.adopt' { shared = true, limit = '8M' } assert(h == require 'hakmem') "
                   f"print(dofile({WHOLE!r}), h.stats().hard_limit)", f"{WHOLE_RESULT}\t{8 << 20}")
        self.check("local h = require 'hakmem.adopt' { shared = true } local l, total = h.labels() local sum = 0 "
                   "for _, v in pairs(l) do sum = sum + v.live_bytes end print(sum == total, l.table.live_blocks > 0)",
                   "true\ttrue")

    def test_whole_program(self):
        self.check(f"require('hakmem') print(dofile({WHOLE!r}))", WHOLE_RESULT)
        self.check(f"print(dofile({WHOLE!r}))", WHOLE_RESULT, "-lhakmem")

    def test_adoption_moves_the_memory(self):
        # What is made before stays with the old allocator, until it grows; what comes after is hakmem's.
        self.check(
            """
            local old, grows = {}, {}
            for i = 1, 20000 do old[i] = { 'record ' .. i } end
            local h = require('hakmem')
            local first = h.stats().live_bytes
            assert(first < 200000, first)
            for i = 20001, 40000 do old[i] = { 'record ' .. i } end
            assert(h.stats().live_bytes > first + 20000 * 40)
            for i = 1, 40000 do assert(old[i][1] == 'record ' .. i) end
            old = nil collectgarbage() collectgarbage()
            assert(h.stats().live_bytes < first + 1000000)
            print('ok')""",
            "ok",
        )

    def test_require_from_a_coroutine(self):
        self.check(
            f"""
            local h = coroutine.wrap(function() return require('hakmem') end)()
            collectgarbage() collectgarbage()
            h.limit(h.stats().committed_bytes + 8000000)
            local x for i = 1, 500000 do x = {{ i }} end
            print(dofile({WHOLE!r}))""",
            WHOLE_RESULT,
        )

    def test_require_twice(self):
        self.check(
            """
            local h = require('hakmem')
            local before = h.stats().live_bytes
            package.loaded.hakmem = nil
            local again = require('hakmem')
            print(again ~= h, again.stats().live_bytes >= before)""",
            "true\ttrue",
        )

    def test_stats(self):
        self.check(
            """
            local s = require('hakmem').stats()
            local names = {}
            for name, value in pairs(s) do
                assert(type(value) == 'number' and value >= 0, name)
                names[#names + 1] = name
            end
            assert(s.committed_bytes == s.live_bytes + s.cached_bytes + s.metadata_bytes)
            table.sort(names)
            print(table.concat(names, ' '))""",
            " ".join(sorted(FIELDS)),
        )

    def test_labels_sum_to_live_bytes(self):
        self.check(
            """
            if jit then jit.off() end
            local h = require('hakmem')
            local keep = {}
            collectgarbage() collectgarbage('stop')
            for round = 1, 20 do
                for i = 1, 1000 do keep[#keep + 1] = { 'text ' .. i, function() return i end } end
                local l, total = h.labels()
                local s = h.stats()
                local bytes, blocks = 0, 0
                for name, v in pairs(l) do bytes = bytes + v.live_bytes blocks = blocks + v.live_blocks end
                assert(bytes == total, bytes .. ' ' .. total)
                assert(total == s.live_bytes, total .. ' ' .. s.live_bytes)
                assert(blocks == s.live_blocks, blocks .. ' ' .. s.live_blocks)
            end
            local l = h.labels()
            assert(l.string.live_blocks >= 1000 and l.closure.live_blocks >= 20000 and l.table.live_blocks >= 20000)
            print('ok')""",
            "ok",
        )

    def test_labels_switch(self):
        self.check(
            """
            local h = require('hakmem')
            collectgarbage() collectgarbage('stop')
            h.labels(false)
            local before = h.labels().unlabelled.live_blocks
            local a = {} for i = 1, 1000 do a[i] = {} end
            local after = h.labels().unlabelled.live_blocks
            h.labels(true)
            local tables = h.labels().table.live_blocks
            local b = {} for i = 1, 1000 do b[i] = {} end
            print(after - before >= 1000, h.labels().unlabelled.live_blocks - after < 100,
                  h.labels().table.live_blocks - tables >= 1000)""",
            "true\ttrue\ttrue",
        )

    def test_label(self):
        self.check(
            """
            local h = require('hakmem')
            local list, second = h.label('records', function(n, m)
                local t = {}
                for i = 1, n do t[i] = { i } end
                return t, m
            end, 1000, 'second')
            collectgarbage()
            local mine = h.labels().records
            assert(#list == 1000 and second == 'second')
            assert(mine.live_blocks >= 1000 and mine.live_bytes >= 1000 * 40, mine.live_blocks)

            -- after an error the outer label is back; the error is the function's
            local object = {}
            h.label('outer', function()
                local ok, e = pcall(h.label, 'inner', function() error(object) end)
                assert(not ok and e == object)
                keep = {} for i = 1, 500 do keep[i] = {} end
            end)
            local other = {} for i = 1, 5000 do other[i] = {} end
            collectgarbage()
            local l = h.labels()
            assert(l.outer.live_blocks >= 500 and l.outer.live_blocks < 1000, l.outer.live_blocks)
            -- a callable object
            print((h.label('x', setmetatable({}, { __call = function(_, a) return a + 1 end }), 41)))""",
            "42",
        )

    def test_limit(self):
        self.check(
            """
            local h = require('hakmem')
            local limit = h.stats().committed_bytes + 2000000
            local committed = h.limit(limit)
            assert(committed == h.stats().committed_bytes and committed < limit, committed)
            assert(h.stats().hard_limit == limit)
            local ok, e = pcall(function() local t = {} while true do t[#t + 1] = { #t } end end)
            collectgarbage()
            assert(not ok and e == 'not enough memory', e)
            assert(h.stats().committed_bytes <= limit)
            local t = {} for i = 1, 1000 do t[i] = { i } end
            -- garbage does not count
            local x for i = 1, 300000 do x = { i } end
            h.limit(0)
            assert(h.stats().hard_limit == 0)
            t = {} for i = 1, 200000 do t[i] = { i } end
            print('ok')""",
            "ok",
        )

    def test_adoption_in_the_middle_of_a_buffer(self):
        self.check(
            """local n, keep = 0, {('b'):rep(5000)}
            for round = 1, 20 do keep[round] = ('x'):rep(3000 + round) end
            local s = ('y'):rep(3000):gsub('y', function()
                n = n + 1
                if n == 2000 then require('hakmem').limit('64M') end
                return 'zz'
            end)
            keep = nil
            collectgarbage() collectgarbage()
            print(#s, s == ('z'):rep(6000), require('hakmem').stats().live_bytes > 0)""",
            "6000\ttrue\ttrue",
        )

    def test_sizes(self):
        for size, expected in SIZES:
            if INTERPRETER in ("lua5.3", "lua5.4", "lua5.5"):
                expected = min(expected, 2**63 - 1)  # the largest of their integers
            self.check(
                f"local h = require('hakmem') h.limit('{size}') print(('%.0f'):format(h.stats().hard_limit))",
                f"{expected:.0f}",
            )

    def test_a_limit_below_what_is_committed_stops_growth(self):
        self.check(
            """
            local h = require('hakmem')
            local committed = h.limit(1)
            assert(committed > 1)
            local ok, e = pcall(function() local t = {} while true do t[#t + 1] = { #t } end end)
            local after = h.limit(0)
            assert(not ok and e == 'not enough memory' and after <= committed, after)
            local t = {} for i = 1, 100000 do t[i] = { i } end
            print('ok')""",
            "ok",
        )

    @unittest.skipUnless(os.uname().machine == "x86_64", "lua_close is not seen there")
    def test_the_end_of_a_full_memory(self):
        for more in range(200000, 1500000, 190000):
            with self.subTest(more=more):
                self.check(f"""
                    local h = require "hakmem"
                    local function final() local x = {{ {{}} }} local y = {{ x }} end
                    local first = newproxy and newproxy(true) or setmetatable({{}}, {{ __gc = final }})
                    if newproxy then getmetatable(first).__gc = final end
                    keep = {{}}
                    h.limit(h.limit(0) + {more})
                    pcall(function()
                        for i = 1, 1e7 do
                            keep[i] = newproxy and newproxy(first) or setmetatable({{}}, getmetatable(first))
                        end
                    end)
                    print "end"
                """, "end")

    def test_trim(self):
        self.check(
            """
            local h = require('hakmem')
            local t = {} for i = 1, 200000 do t[i] = { i } end
            t = nil
            print(h.trim() > 4000000, h.stats().live_bytes < 1000000)""",
            "true\ttrue",
        )

    def test_report(self):
        done = self.start("local h = require('hakmem') h.report() h.report('report.txt') print('end')")
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"))
        with open(os.path.join(self.dir, "report.txt")) as f:
            text = f.read()
        for report in (done.stderr, text):
            self.assertRegex(report, r"^hakmem \d+\.\d+\.\d+: process \d+: \d+ bytes in \d+ blocks\n")
            self.assertRegex(report, r"\n  string +\d+ +\d+ +\d+\.\d %")
            self.assertRegex(report, r"\n  process resident +\d+ ")
            self.assertLessEqual(max(map(len, report.splitlines())), 100)

    def test_bad_arguments(self):
        for call, expected in (
            ("h.limit()", "bad argument #1 to 'limit' (number expected, got no value)"),
            ("h.limit(-1)", "bad argument #1 to 'limit' (a whole number of bytes expected, 0 = no limit)"),
            ("h.limit(1.5)", "a whole number of bytes expected"),
            ("h.limit(0/0)", "a whole number of bytes expected"),
            ("h.limit(1/0)", "a whole number of bytes expected"),
            ("h.limit(2^63)", "a whole number of bytes expected"),
            ("h.limit('64Q')", "bad argument #1 to 'limit' ('64Q' is no size; a size is 1000, 64K, 512M or 1.5G"),
            ("h.limit({})", "number expected, got table"),
            ("h.label()", "bad argument #1 to 'label' (string expected, got no value)"),
            ("h.label('', print)", "bad argument #1 to 'label' (a name of 1 to 63 bytes expected)"),
            ("h.label(('x'):rep(64), print)", "a name of 1 to 63 bytes expected"),
            ("h.label('a\\0b', print)", "a name of 1 to 63 bytes expected"),
            ("h.label('x')", "bad argument #2 to 'label' (a function expected)"),
            ("h.label('x', {})", "bad argument #2 to 'label' (a function expected)"),
            ("h.labels(1)", "bad argument #1 to 'labels' (boolean expected, got number)"),
            ("h.report({})", "bad argument #1 to 'report' (string expected, got table)"),
            ("h.report('/nosuch/file')", "hakmem.report: cannot write to '/nosuch/file': No such file"),
        ):
            with self.subTest(call):
                self.assertIn(expected, self.error(call))

    def test_the_longest_name_and_all_labels(self):
        self.check(
            """
            local h = require('hakmem')
            local name = ('n'):rep(63)
            keep = h.label(name, function() return {} end)
            assert(h.labels()[name].live_blocks == 1)
            -- Names beyond the room are booked under `other`, those that have a label keep it.
            collectgarbage() collectgarbage('stop')
            local before = h.labels().other.live_blocks
            local n, tables = 0, {}
            for round = 1, 2 do
                for i = 1, 300 do
                    h.label('label ' .. i, function() n = n + 1 tables[n] = {} end)
                end
            end
            local l, total = h.labels()
            local bytes, count, mine = 0, 0, 0
            for label, v in pairs(l) do
                bytes = bytes + v.live_bytes count = count + 1
                if label:find('^label %d') then
                    mine = mine + 1
                    assert(v.live_blocks >= 2, label)
                end
            end
            local rest = l.other.live_blocks - before
            assert(n == 600 and mine > 200 and mine < 300)
            assert(rest >= (300 - mine) * 2 and rest < (300 - mine) * 2 + 50, rest)
            -- and h.label('other', ...) is the same label
            local t = h.label('other', function() return { {}, {} } end)
            assert(h.labels().other.live_blocks >= before + rest + 3)
            print(bytes == total, count)""",
            "true\t254",
        )

    def test_strings_that_grow(self):
        # Buffers that grow by small steps among other blocks, with the program's pages given back in between.
        code = """
            local h = require('hakmem')
            local parts, seed = {}, tonumber(arg[1])
            local function random(n) seed = (seed * 16807) % 2147483647 return seed % n + 1 end
            for round = 1, 12 do
                local s = ''
                for i = 1, 60 do
                    s = s .. string.rep(string.char(97 + i % 26), random(14))
                    parts[random(40)] = s .. '!'
                    parts[random(40)] = { s, #s }
                end
                if round % 3 == 0 then h.trim() end
                local t = {}
                for i = 1, 40 do
                    local p = parts[i]
                    if type(p) == 'table' then assert(#p[1] == p[2]) p = p[1] end
                    if p then assert(not p:find('[^a-z!]')) t[#t + 1] = p end
                end
                assert(#table.concat(t, ',') > 0)
            end
            print('ok')"""
        path = os.path.join(self.dir, "growth.lua")
        with open(path, "w") as f:
            f.write(code)
        env = environment(LUA_CPATH=os.path.join(DIRECTORY, "?.so"))
        if PRELOAD:
            env["LD_PRELOAD"] = PRELOAD
        for run in range(1, 301):
            done = subprocess.run([INTERPRETER, path, str(run)], capture_output=True, env=env, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ok\n", b""), run)

    def test_memory_falls_after_a_trim(self):
        self.check(
            """
            local h = require('hakmem')
            local function resident()
                local f = io.open('/proc/self/statm')
                local pages = f:read('*a'):match('%d+ (%d+)')
                f:close()
                return pages * 4096
            end
            local t = {} for i = 1, 400000 do t[i] = { i } end
            local full = resident()
            t = nil
            h.trim()
            print(full - resident() > 10000000)""",
            "true",
        )

    def test_c_modules_and_files_at_the_end(self):
        # lua_close unloads modules and runs finalizers while it still frees through hakmem.
        self.check(
            """
            require('hakmem')
            local f = io.open('out.txt', 'w')
            f:write('written')
            keep = f
            co = coroutine.wrap(function() coroutine.yield(f) end) co()
            print('ok')""",
            "ok",
        )
        with open(os.path.join(self.dir, "out.txt")) as f:
            self.assertEqual(f.read(), "written")


if __name__ == "__main__":
    if shutil.which(INTERPRETER) is None:
        print("no " + INTERPRETER)
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1])
