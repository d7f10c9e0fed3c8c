"""Inserts into and reads from a database in memory."""

import sqlite3
import sys

scale = float(sys.argv[1])
db = sqlite3.connect(":memory:")
db.execute("create table t (id integer primary key, name text, value real, tag text)")
total = 0
for turn in range(max(1, int(5 * scale))):
    rows = [(turn * 20_000 + i, f"name {i}", i / 3, f"tag{i % 50}") for i in range(20_000)]
    db.executemany("insert into t values (?, ?, ?, ?)", rows)
    for name, value, tag in db.execute("select name, value, tag from t where id % 3 = 0"):
        total += len(name) + len(tag) + int(value)
    total += len(db.execute("select tag, count(*), sum(value) from t group by tag").fetchall())
print(total)
