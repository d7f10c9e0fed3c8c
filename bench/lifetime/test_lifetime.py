"""Tests of scripts/bench lifetime: made events have the outcome that they must have, programs can be
recorded, what is broken is refused. The environment variable BUILD is the build tree."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import page  # noqa: E402
import workloads  # noqa: E402

BUILD = Path(os.environ["BUILD"]) / "bench/lifetime"
RECORDER = f"{BUILD}/lifetime-record.so"
ALLOC, FREE, FROM, TO, MARK = range(5)


def event(op, address=0, size=0, *sites):
    return struct.pack("<QI3I", op << 56 | address, size, *(sites or (0, 0, 0)))


def waves(long_line=7, mixed=False):
    """Four waves of 6000 blocks of 96 bytes; each twentieth lives for a wave more and is of another line."""
    events, kept = [], []
    for wave in range(4):
        going, staying = [], []
        for i in range(6000):
            address = (wave * 6000 + i + 1) * 128
            stays = i % 20 == 0
            line = long_line if stays and not mixed else 3
            events.append(event(ALLOC, address, 96, line, line + 1, i % 50))
            (staying if stays else going).append(address)
        events += [event(FREE, a) for a in going + kept]
        kept = staying
        events.append(event(MARK))
    return b"".join(events)


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def play(self, train, test, *mode):
        command = [BUILD / "lifetime-play", train, test, *mode]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class Player(Base):
    def rows(self, train, test):
        done = self.play(self.file("train", train), self.file("test", test))
        self.assertEqual(done.returncode, 0, done.stderr)
        about, *rows = map(json.loads, done.stdout.splitlines())
        return about, {r["key"]: r for r in rows}

    def test_a_line_of_long_lived_blocks_gets_pages_of_its_own(self):
        about, rows = self.rows(waves(), waves())
        self.assertEqual(about, {"steps": 4 * 11700 + 900 + 4, "blocks": 24000, "lasted": 1200, "marks": 4})
        none = rows["none"]["resident"]
        self.assertLess(rows["known"]["resident"], 0.7 * none)
        self.assertEqual(rows["line"]["resident"], rows["known"]["resident"])
        self.assertEqual([rows["line"][q] for q in ("precision_blocks", "recall_bytes")], [1, 1])
        self.assertGreater(rows["chance"]["resident"], none)
        self.assertEqual(rows["none"]["live"], rows["line"]["live"])

    def test_a_key_that_does_not_tell_them_apart_saves_nothing(self):
        _, rows = self.rows(waves(mixed=True), waves(mixed=True))
        self.assertLess(rows["known"]["resident"], 0.7 * rows["none"]["resident"])
        self.assertGreater(rows["line"]["resident"], 0.95 * rows["none"]["resident"])

    def test_what_another_run_says_of_lines_that_are_not_there_is_not_used(self):
        _, rows = self.rows(waves(), waves(long_line=8))
        self.assertEqual(rows["line"]["recall_blocks"], 0)

    def test_a_block_that_grows_stays_one_block(self):
        moved = event(FROM, 4096) + event(TO, 8192, 500) + event(MARK) + event(FREE, 8192) + event(MARK)
        about, rows = self.rows(waves(), event(ALLOC, 4096, 100, 7, 8, 9) + moved)
        self.assertEqual(about, {"steps": 5, "blocks": 1, "lasted": 1, "marks": 2})
        self.assertEqual(rows["line"]["recall_bytes"], 1)

    def test_calls_are_played_in_each_mode(self):
        path = self.file("train", waves())
        for mode in ("one", "two", "lookup"):
            self.assertEqual(json.loads(self.play(path, path, mode).stdout), {"allocations": 24000})
        self.assertIn("modes are", self.play(path, path, "three").stderr)

    def test_what_is_no_trace_is_refused(self):
        whole = self.file("whole", waves())
        for data, why in (
            (b"", "no trough"),
            (event(ALLOC, 16, 16), "no trough"),
            (event(9, 16) + event(MARK), "not a trace"),
        ):
            done = self.play(whole, self.file("broken", data))
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)
        self.assertIn("cannot be read", self.play(whole, self.folder / "absent").stderr)

    def test_the_tables_are_written_between_the_marks(self):
        about, rows = self.rows(waves(), waves())
        calls = {"one": 40, "two": 41, "lookup": 46}
        made = {"about": about, "rows": rows, "calls": calls, "program": 250}
        where = {"date": "today", "commit": "c", "machine": {"cpu": "x", "kernel": "y"}}
        result = {"programs": {"made": made}, **where}
        path = self.file("page.md", b"before\n<!-- begin lifetime -->\nold\n<!-- end lifetime -->\nafter\n")
        page.write(result, path)
        text = path.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n") and "old" not in text)
        self.assertIn("| made | 250 | 2.5 | 40.0 | 41.0 | 46.0 |", text)
        with self.assertRaises(SystemExit):
            page.write(result, self.file("bare.md", b"no marks\n"))
        old = self.file("old.json", json.dumps(result).encode())
        again = [sys.executable, "-B", HERE / "run.py", "--from", old]
        self.assertIn("| made | 250 | 2.5 |", subprocess.check_output(again, text=True))


class Recorder(Base):
    def recorded(self, command, environment, text=None):
        path = self.folder / "events"
        environment = workloads.environment({"HAK_RECORD": str(path), **environment})
        subprocess.run(command, env=environment, input=text, check=True, stdout=subprocess.DEVNULL)
        done = self.play(path, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        about, *rows = map(json.loads, done.stdout.splitlines())
        return about, {r["key"]: r for r in rows}

    def check_lines(self, rows):
        """Two lines that allocate the same are told apart, but for what the runtime does when it starts."""
        right = {k: rows[k]["precision_blocks"] * rows[k]["recall_blocks"] for k in ("line", "size")}
        self.assertGreater(right["line"], 0.6)
        self.assertLess(right["size"], 0.4)

    def test_lines_of_lua(self):
        if not (BUILD / "lifetime_lua.so").exists():
            self.skipTest("no liblua5.4-dev")
        program = self.file(
            "program.lua",
            b"""
            local lifetime, kept = require "lifetime_lua", {}
            local function work()
                for i = 1, 20000 do
                    local gone = { i }
                    if i % 8 == 0 then
                        kept[#kept + 1] = { i }
                    end
                end
            end
            for _ = 1, 3 do
                coroutine.wrap(work)()
                collectgarbage()
                lifetime.mark()
            end
        """,
        )
        environment = {"LD_PRELOAD": RECORDER, "LUA_CPATH": f"{BUILD}/?.so"}
        about, rows = self.recorded(["lua5.4", program], environment)
        self.assertEqual(about["marks"], 3)
        self.check_lines(rows)

    def test_lines_of_python(self):
        if not (BUILD / "lifetime_python.so").exists():
            self.skipTest("no headers of CPython 3.11")
        program = self.file(
            "program.py",
            b"""
import lifetime_python
kept = []
for _ in range(3):
    gone = []
    for i in range(20000):
        gone.append([None])
        if i % 8 == 0:
            kept.append([None])
    del gone
    lifetime_python.mark()
""",
        )
        environment = {"LD_PRELOAD": RECORDER, "PYTHONPATH": str(BUILD), "PYTHONMALLOC": "malloc"}
        about, rows = self.recorded([workloads.PYTHON, program], environment)
        self.assertEqual(about["marks"], 3)
        self.check_lines(rows)

    def test_stacks_of_native_programs_and_troughs_by_a_signal(self):
        sql = b"create table t(a); insert into t values (1);\n.shell kill -USR2 $PPID\nselect * from t;\n"
        about, rows = self.recorded(["sqlite3", ":memory:"], {"LD_PRELOAD": RECORDER}, sql)
        self.assertEqual(about["marks"], 1)
        self.assertGreater(rows["12 frames and size"]["keys"], rows["line and size"]["keys"])


if __name__ == "__main__":
    unittest.main()
