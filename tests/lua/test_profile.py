"""Profiles from the outside: test_profile.py INTERPRETER [DIRECTORY [LD_PRELOAD]]

INTERPRETER is a launcher of hakmem, or one of the system, which gets the module from DIRECTORY.
"""

import json
import os
import subprocess
import sys
import unittest

from outside import FolderCase, environment

INTERPRETER = sys.argv.pop(1)
DIRECTORY = sys.argv.pop(1) if len(sys.argv) > 1 else None
PRELOAD = sys.argv.pop(1) if len(sys.argv) > 1 else ""
CLOCK = os.environ.get("HAKMEM_CLOCK", "")  # the library of tests/support/clock.c; none beside a sanitizer
LAUNCHER = DIRECTORY is None
LUAJIT = "luajit" in os.path.basename(INTERPRETER)
NO_JIT = "if jit then jit.off() end\n"
# The program's clock goes so many seconds ahead.
SECONDS = "local function seconds(n) local f = assert(io.open('clock', 'w')) f:write('0 ', n) f:close() end"


class Case(FolderCase):
    def start(self, *args):
        env = environment()
        if DIRECTORY:
            env["LUA_CPATH"] = os.path.join(DIRECTORY, "?.so")
        if PRELOAD or CLOCK:
            env["LD_PRELOAD"] = PRELOAD or CLOCK
            env["CLOCK_FILE"] = "clock"
        return subprocess.run(
            [INTERPRETER, *args], capture_output=True, text=True, cwd=self.dir, env=env, timeout=120
        )

    def run_code(self, code, *args):
        self.write("a.lua", code)
        done = self.start(*args, "a.lua")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def read(self, name="profile.json"):
        with open(os.path.join(self.dir, name)) as f:
            report = json.load(f)
        self.assertEqual(report["schema"], "hakmem-report/1")
        return report["contexts"][0]

    def by_line(self, context, what="live_blocks"):
        """Sums by the innermost place in Lua and label."""
        sums = {}
        frames = context["frames"]
        for stack in context["stacks"]:
            line = next(
                (f"{frames[f]['file']}:{frames[f].get('line', 0)}" for f in stack["frames"] if frames[f].get("file")),
                "none",
            )
            key = (line, stack["label"])
            sums[key] = sums.get(key, 0) + stack[what]
        return sums


# 1,000 tables at line 4, 300 of them with another label at line 8.
# Calls go deep first, so that neither the stack nor its records of calls grow while tables are counted; a
# collection would shorten them.
PROGRAM = """
keep = {} collectgarbage('stop') do local function deep(n) return n > 0 and 1 + deep(n - 1) or 0 end deep(20) end
for i = 1, 1000 do
  keep[i] = {}
end
local hakmem = require('hakmem')
hakmem.label('mine', function()
  for i = 1, 300 do keep[i] = {} end
end)
collectgarbage() collectgarbage()
"""


class Module(Case):
    def test_exact(self):
        for mode in "exact", "lines":
            with self.subTest(mode):
                self.counts_exactly(mode)

    def counts_exactly(self, mode):
        out = self.run_code(
            NO_JIT + "local h = require('hakmem') h.profile{ mode = '" + mode + "' }\n" + PROGRAM + """
            local r = h.profile.report()
            h.profile.stop()
            assert(r.mode == '""" + mode + """' and r.running and r.mean == nil and r.dropped_samples == 0)
            local tables, mine, sum, first = 0, 0, 0, nil
            for i, s in ipairs(r.stacks) do
                assert(s.live_bytes_error == 0 and s.id > 0)
                assert(i == 1 or s.live_bytes <= r.stacks[i - 1].live_bytes)
                local f = s.frames[1]
                if f and f.source == '@a.lua' and f.line == 6 and s.label == 'table' then tables = s.live_blocks end
                if f and f.source == '@a.lua' and f.line == 10 and s.label == 'mine' then mine = mine + s.live_blocks end
                if f and f.line == 6 then assert(f.kind == 'lua' and f.defined == 0) end
                if f and f.line == 10 then assert(f.kind == 'lua' and f.defined == 9) end
                sum = sum + s.live_bytes
            end
            local lines = 0
            for line, l in pairs(r.lines) do lines = lines + l.live_bytes end
            print(tables, mine, lines <= sum and lines > 0.9 * sum, r.lines['a.lua:6'].alloc_blocks >= 1000)""",
        )
        self.assertEqual(out.replace(".0", ""), "700\t300\ttrue\ttrue")

    def test_lines_go_on_with_frees_and_the_next_profile_forgets(self):
        out = self.run_code(
            NO_JIT + "local h = require('hakmem') h.profile{ mode = 'lines' }" + PROGRAM + """
            h.profile.stop()
            for i = 1, 100 do keep[i] = {} end
            collectgarbage() collectgarbage()
            local r = h.profile.report()
            assert(r.running == false and r.table_bytes > 0)
            local n = 0
            for _, s in ipairs(r.stacks) do
                if s.frames[1] and s.frames[1].line == 5 and s.label == 'table' then n = n + s.live_blocks end
            end
            h.profile.report('profile.json')
            h.profile{ mode = 'exact' }
            print(n, h.profile.report().mode, h.profile.report().lines['a.lua:5'])"""
        )
        self.assertEqual(out.replace(".0", ""), "700\texact\tnil")
        context = self.read()
        self.assertEqual(context["profile"]["mode"], "counted")
        self.assertEqual(self.by_line(context)[("a.lua:5", "table")], 700)

    def test_the_file_says_what_the_table_says(self):
        out = self.run_code(
            NO_JIT + "local h = require('hakmem') h.profile.start{ mode = 'exact', depth = 32 }" + PROGRAM + """
            h.profile.stop()
            h.profile.report('profile.json')
            local r = h.profile.report()
            local a = 0
            for _, s in ipairs(r.stacks) do
                if s.frames[1] and s.frames[1].line == 5 and s.label == 'table' then a = a + s.live_blocks end
            end
            print(#r.stacks, a)"""
        )
        count, tables = out.split()
        context = self.read()
        self.assertEqual(context["profile"]["mode"], "exact")
        self.assertEqual(len(context["stacks"]), int(count))
        lines = self.by_line(context)
        self.assertEqual(lines[("a.lua:5", "table")], float(tables))
        self.assertEqual(lines[("a.lua:5", "table")], 700)
        self.assertEqual(lines[("a.lua:9", "mine")], 300)
        self.assertEqual({f["kind"] for f in context["frames"]} - {"native"}, {"interpreter"})
        names = {f["function"] for f in context["frames"]}
        self.assertIn("main chunk", names)
        self.assertIn("label", names)
        mine = next(s for s in context["stacks"] if s["label"] == "mine" and s["live_blocks"] == 300)
        chain = [context["frames"][f] for f in mine["frames"]]
        self.assertEqual(chain[0]["line"], 9)
        self.assertEqual(chain[0]["function"], "function <a.lua:8>")
        self.assertEqual([f["function"] for f in chain[1:3]], ["label", "main chunk"])
        self.assertEqual(chain[2]["line"], 8)

    def test_sampled(self):
        out = self.run_code(
            NO_JIT + """
            local h = require('hakmem')
            h.profile{ mean = '4K', seed = 7 }
            keep = {}
            for i = 1, 50000 do
                keep[i] = {}
            end
            collectgarbage()
            local r = h.profile.report()
            local line = r.lines['a.lua:7']
            print(r.mode, r.mean, r.samples > 200, line.live_blocks > 40000 and line.live_blocks < 60000)"""
        )
        self.assertEqual(out, "sampled\t4096\ttrue\ttrue")

    def test_windows(self):
        for mode in "exact", "lines":
            with self.subTest(mode):
                self.windows(mode)

    def windows(self, mode):
        out = self.run_code(
            NO_JIT + SECONDS + """
            local h = require('hakmem')
            h.profile{ mode = '""" + mode + """' }
            assert(#h.profile.report().marks == 0 and #h.profile.report().verdicts == 0)
            kept = {} collectgarbage() collectgarbage()
            for window = 1, 8 do
                seconds(window * 1000) assert(h.profile.mark('turn ' .. window) == window)
                for i = 1, 1000 do
                    local t = {}
                    if i % 10 == 0 then kept[#kept + 1] = {} end
                end
                collectgarbage() collectgarbage()
            end
            local changed = {}
            for _, s in ipairs(h.profile.diff(3, 5)) do
                if s.label == 'table' and s.frames[1].line == 11 then changed[1] = s end
                if s.label == 'table' and s.frames[1].line == 10 then changed[2] = s end
            end
            local stays, goes = changed[1], changed[2]
            print(stays.live_blocks, stays.alloc_blocks, goes.live_blocks, goes.alloc_blocks)
            local now = 0
            for _, s in ipairs(h.profile.diff(0)) do
                if s.label == 'table' and s.frames[1].line == 11 then now = now + s.live_blocks end
            end
            -- The last window counts for itself from half of the length of the others on.
            seconds(8400)
            local short = h.profile.report()
            seconds(9000)
            local r = h.profile.report()
            print(now, #r.marks, r.marks[8].name, r.marks[8].at >= r.marks[1].at,
                  r.marks[8].live_bytes > r.marks[1].live_bytes)
            assert(r.marks[1].resident_bytes > 1e6 and r.marks[8].resident_bytes > 1e6)
            local function kept_at_line(r)
                local found
                for i, v in ipairs(r.verdicts) do
                    assert(i == 1 or v.kind == r.verdicts[i - 1].kind or v.kind == 'growth')
                    if v.stack.label == 'table' and v.stack.frames[1].line == 11 then found = v end
                    assert(v.stack.frames[1].line ~= 10)
                end
                return found
            end
            local found, before = kept_at_line(r), kept_at_line(short)
            print(before.windows, found.windows)
            print(found.kind, found.low > 0 and found.high >= found.low,
                  found.freed_share, found.evidence:match('^grew by'))"""
        )
        rows = out.replace(".0", "").split("\n")
        if not CLOCK:  # the lengths of the windows are what the machine makes them
            self.assertTrue(set(rows.pop(2).split()) <= {"7", "8"})
            rows.insert(2, "7\t8")
        self.assertEqual(
            rows,
            ["200\t200\t0\t2000", "800\t8\tturn 8\ttrue\ttrue", "7\t8", "leak\ttrue\t0\tgrew by"],
        )

    @unittest.skipUnless(LUAJIT, "no compiler")
    def test_traces_are_no_leak(self):
        """They grow as the functions do that are kept, but LuaJIT forgets them all when there are too many."""
        for mode in "exact", "lines":
            with self.subTest(mode):
                out = self.run_code(
                    """
                    local h = require('hakmem')
                    h.profile{ mode = '""" + mode + """' }
                    kept = {}
                    for window = 1, 8 do
                        h.profile.mark()
                        for i = 1, 20 do
                            local f = loadstring('local n = ' .. i .. ' for i = 1, 200 do n = n + i end return n')
                            f() kept[#kept + 1] = f
                        end
                        collectgarbage() collectgarbage()
                    end
                    local kinds, bounded = {}
                    for _, v in ipairs(h.profile.report().verdicts) do
                        local label = v.stack.label
                        kinds[label] = kinds[label] == 'leak' and 'leak' or v.kind
                        if label == 'trace' then bounded = v.evidence:match('the runtime bounds it') end
                    end
                    print(kinds.proto, kinds.trace, bounded)"""
                )
                self.assertEqual(out, "leak\tfilling\tthe runtime bounds it")

    def test_a_label_of_the_programs_own_leaks_whatever_its_name(self):
        for name in "trace", "traces":
            with self.subTest(name):
                out = self.run_code(
                    """
                    local h = require('hakmem')
                    h.profile{ mode = 'exact' }
                    kept = {}
                    for window = 1, 12 do
                        h.profile.mark()
                        h.label('""" + name + """', function() for i = 1, 200 do kept[#kept + 1] = { i } end end)
                        collectgarbage() collectgarbage()
                    end
                    local v = h.profile.report().verdicts[1]
                    print(v.stack.label, v.kind)"""
                )
                own = "trace (label)" if LUAJIT and name == "trace" else name
                self.assertEqual(out, f"{own}\tleak")

    @unittest.skipUnless(CLOCK, "no clock of the test's own")
    def test_windows_by_the_clock(self):
        # Mode lines begins a window up to 64 KiB late, and what is garbage by then lives still. What is kept is
        # three times as much, so that the windows grow evenly in any mode.
        for mode in "exact", "lines":
            for limit in "", "h.limit('100M')":
                with self.subTest(mode, limit=limit):
                    out = self.run_code(
                        NO_JIT + SECONDS + """
                        seconds(0) local h = require('hakmem')
                        h.profile{ mode = '""" + mode + """', window = 60 }
                        """ + limit + """
                        keep = {}
                        for minute = 1, 10 do
                            seconds(minute * 60)
                            for i = 1, 20000 do
                                local t = { i, i, i, i }
                                if i % 10 == 0 then keep[#keep + 1] = t end
                            end
                            collectgarbage() collectgarbage()
                        end
                        local r = h.profile.report()
                        local found
                        for _, v in ipairs(r.verdicts) do
                            if v.stack.frames[1].line == 10 then found = v.kind end
                        end
                        print(#r.marks >= 9 and #r.marks <= 11, found)"""
                    )
                    self.assertEqual(out, "true\tleak")

    def test_windows_while_a_finalizer_begins_another_profile(self):
        out = self.run_code(
            NO_JIT + """
            local h = require('hakmem')
            local begun = 0
            local function many(n) return n % 2 == 0 and 60 or 20 end
            local function begin()
                begun = begun + 1
                if begun > 1 then h.profile.stop() end
                h.profile{ table = '1M' }
                for i = 1, many(begun) do h.profile.mark(begun .. ' ' .. i) end
            end
            local function when_collected(f)
                if newproxy then getmetatable(newproxy(true)).__gc = f else setmetatable({}, { __gc = f }) end
            end
            local function again() begin() when_collected(again) end
            begin()
            when_collected(again)
            for what, n in pairs { pause = 0, stepmul = 1000 } do
                if _VERSION == 'Lua 5.5' then collectgarbage('param', what, n) else collectgarbage('set' .. what, n) end
            end
            local meanwhile = 0
            for round = 1, 40 do
                local before = begun
                local r = h.profile.report()
                if begun > before then meanwhile = meanwhile + 1 end
                local of = tonumber(r.marks[1].name:match('^(%d+) 1$'))
                assert(of and #r.marks == many(of), r.marks[1].name .. ': ' .. #r.marks)
                for i, m in ipairs(r.marks) do assert(m.name == of .. ' ' .. i, m.name) end
                h.profile.diff(0, 1)
            end
            print(meanwhile > 4)"""
        )
        self.assertEqual(out, "true")

    def test_coroutines_from_before(self):
        # In an adopted state they lie in memory of the old allocator.
        out = self.run_code(
            NO_JIT + """
            local function body()
                coroutine.yield()
                local t = {}
                for i = 1, 400 do t[i] = {} end
                keep = t
            end
            local co = coroutine.wrap(body)
            co()
            local h = require('hakmem')
            h.profile{ mode = 'exact', depth = 4 }
            co()
            local n = 0
            for _, s in ipairs(h.profile.report().stacks) do
                if s.frames[1].line == 6 and s.label == 'table' then
                    n = n + s.live_blocks
                    assert(s.frames[2].kind == 'coroutine', s.frames[2].kind)
                end
            end
            print(n)"""
        )
        self.assertEqual(out.replace(".0", ""), "400")

    def test_coroutines_that_have_just_begun(self):
        """The runtime makes the record of a coroutine's first call before any function runs there."""
        code = """
local hakmem = require 'hakmem'
hakmem.profile.start{mode = arg[1]}
local kept = {}
for i = 1, 500 do
  kept[i] = coroutine.create(function(n)
    coroutine.yield(n)
  end)
  coroutine.resume(kept[i], i)
end
for _, stack in ipairs(hakmem.profile.report().stacks) do
  local line
  for _, frame in ipairs(stack.frames) do line = line or frame.line end
  if stack.live_blocks >= 500 and stack.label ~= 'strtab' then print(line) end
end
"""
        for mode in ("exact", "lines"):
            lines = self.run_code(code.replace("arg[1]", f"'{mode}'")).split()
            self.assertTrue(set(lines) <= {"6", "7", "8"}, lines)
            self.assertIn("6", lines)

    def test_bad_arguments(self):
        for call, expected in (
            ("h.profile(1)", "bad argument"),
            ("h.profile{ mode = 'all' }", "mode is 'sampled', 'exact' or 'lines'"),
            ("h.profile{ mode = 1 }", "mode is 'sampled', 'exact' or 'lines'"),
            ("h.profile{ mode = 'lines', mean = '1K' }", "with mode 'lines' there is no other option than table"),
            ("h.profile{ mode = 'lines', depth = 2 }", "with mode 'lines' there is no other option than table"),
            ("h.profile{ rate = 1 }", "no option 'rate'; there are mode, mean, depth, table, seed"),
            ("h.profile{ 5 }", "no option 'number'; there are mode, mean, depth, table, seed"),
            ("h.profile{ mean = 'x' }", "'x' is no size"),
            ("h.profile{ mean = -1 }", "a whole number of bytes expected, 0 = 512 KiB"),
            ("h.profile{ mean = {} }", "a whole number of bytes expected, 0 = 512 KiB"),
            ("h.profile{ mean = 10 }", "an option is out of range"),
            ("h.profile{ depth = 65 }", "depth is at most 64"),
            ("h.profile() h.profile()", "a profile is running already"),
            ("h.profile.stop()", "no profile was started"),
            ("h.profile.report()", "no profile was started"),
            ("h.profile.mark('a')", "no profile was started"),
            ("h.profile.diff(0)", "no profile was started"),
            ("h.profile() h.profile.mark({})", "string expected, got table"),
            ("h.profile() h.profile.diff()", "number expected, got no value"),
            ("h.profile() h.profile.diff(2)", "no such window, the last one is 0"),
            ("h.profile() h.profile.diff(0.5)", "no such window, the last one is 0"),
            ("h.profile() h.profile.mark() h.profile.diff(1, 1)", "a later window expected"),
            ("h.profile{ table = '64K' } while true do h.profile.mark() end", "no room for one more mark"),
            ("h.profile() h.profile.report('/nosuch/file')", "cannot write to '/nosuch/file': No such file"),
            ("h.profile() h.profile.report({})", "string expected, got table"),
        ):
            with self.subTest(call):
                self.write("a.lua", "local h = require('hakmem') " + call)
                done = self.start("a.lua")
                self.assertEqual(done.returncode, 1)
                self.assertIn(expected, done.stderr.split("\n")[0])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_an_error_and_no_more(self):
        out = self.run_code(
            "local h = require('hakmem') h.profile() "
            "local ok, e = pcall(h.profile.report, '/dev/full') print(ok, e:match('cannot write to .*'))"
        )
        self.assertEqual(out, "false\tcannot write to '/dev/full'")


@unittest.skipUnless(LAUNCHER, "of the launchers")
class Launcher(Case):
    def test_exact(self):
        for mode in "exact", "lines":
            self.run_code(NO_JIT + PROGRAM, "--hak-profile=profile.json," + mode)
            context = self.read()
            self.assertEqual(context["profile"]["mode"], {"lines": "counted"}.get(mode, mode))
            lines = self.by_line(context)
            self.assertEqual(lines[("a.lua:5", "table")], 700)
            self.assertEqual(lines[("a.lua:9", "mine")], 300)

    def test_stacks_that_grow(self):
        grow = (
            "local function deep(n) local t = { n } return n == 0 and 0 or 1 + deep(n - 1) end "
            "for i = 1, 20 do assert(coroutine.wrap(function() return deep(1000 + i) end)() == 1000 + i) end"
        )
        for rate in "1024", "lines", "exact", "exact":
            self.run_code(grow, "--hak-profile=profile.json," + rate)
            self.assertIn("stack", {stack["label"] for stack in self.read()["stacks"]})

    def test_coroutines_that_cannot_be_resumed(self):
        # LuaJIT has `false` in place of the function while it makes the message.
        message = "cannot resume dead coroutine"
        code = (
            "local dead, n = coroutine.create(function() end), 0\n"
            "for i = 1, 600 do\n"
            "  local ok, message = coroutine.resume(dead)\n"
            "  if not ok then n = n + #message end\n"
            "  ok, message = nil, nil collectgarbage()\n"
            "end\n"
            "print(n == 599 * %d)" % len(message)  # as a constant it would be a string from the start
        )
        for jit in "", NO_JIT:
            for rate in "1024", "lines", "exact":
                with self.subTest(jit=jit, rate=rate):
                    self.assertEqual(self.run_code(jit + code, "--hak-profile=profile.json," + rate), "true")
                    if LUAJIT and jit and rate != "1024":
                        self.assertGreater(self.by_line(self.read(), "alloc_blocks")[("a.lua:4", "string")], 400)

    def test_rates(self):
        for rate, mean in (("", 524288), (",64K", 65536), (",1024", 1024)):
            self.run_code(PROGRAM, "--hak-profile=profile.json" + rate)
            profile = self.read()["profile"]
            self.assertEqual((profile["mode"], profile["mean_bytes"]), ("sampled", mean))

    def test_with_a_report_and_without_labels(self):
        self.write("a.lua", NO_JIT + PROGRAM)
        done = self.start("--hak-profile=a,b.json,exact", "--hak-report", "--hak-labels=off", "a.lua")
        self.assertEqual(done.returncode, 0)
        self.assertIn("labels are off", done.stderr.split("\n")[0])
        lines = self.by_line(self.read("a,b.json"), "alloc_blocks")
        self.assertGreaterEqual(lines[("a.lua:5", "unlabelled")], 1000)

    def test_wrong_rates(self):
        for option, expected in (
            ("--hak-profile", "'--hak-profile' needs its value in the same word, behind =: --hak-profile=profile.json"),
            ("--hak-profile=", "the name of a file expected"),
            ("--hak-profile=,64K", "the name of a file expected"),
            ("--hak-profile=f,fast", "the rate 'fast' is no size"),
            ("--hak-profile=f,10", "the rate '10' is not from 1K to 1T"),
            ("--hak-profile=/nosuch/file", "No such file or directory"),
        ):
            done = self.start(option, "-e", "print(1)")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(os.listdir(self.dir), [])

    def test_at_every_end(self):
        ends = {"return": 0, "os.exit(7)": 7, "os.exit(0, true)": 0, "error('stop')": 1}
        for code, status in ends.items():
            with self.subTest(code):
                done = self.start("--hak-profile=profile.json,exact", "-e", "t = {} " + code)
                self.assertEqual(done.returncode, status)
                self.assertTrue(self.read()["stacks"])
                os.unlink(os.path.join(self.dir, "profile.json"))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_that_cannot_be_written(self):
        done = self.start("--hak-profile=/dev/full", "-e", "io.write('out')")
        self.assertEqual((done.stdout, done.returncode), ("out", 1))
        self.assertIn("cannot write the profile: No space left on device\n", done.stderr)

    def test_under_a_limit(self):
        grow = "local t = {} for i = 1, 1e6 do t[i] = { i } end"
        for mode in "exact", "lines":
            done = self.start("--hak-profile=profile.json," + mode, "--hak-limit=8M", "-e", grow)
            self.assertEqual(done.returncode, 1)
            self.assertIn("not enough memory", done.stderr)
            self.assertTrue(self.read()["stacks"])


if __name__ == "__main__":
    unittest.main()
