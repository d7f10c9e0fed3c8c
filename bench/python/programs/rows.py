"""Reads CSV into dictionaries, groups and sorts them: a batch job that holds all of its data."""

import collections
import csv
import io
import sys

scale = float(sys.argv[1])
source = "id,city,amount,comment\n" + "".join(
    f"{i},city{i % 113},{i * 37 % 1000}.5,comment number {i}\n" for i in range(int(100_000 * scale) + 10)
)
rows = list(csv.DictReader(io.StringIO(source)))
groups = collections.defaultdict(list)
for row in rows:
    groups[row["city"]].append(float(row["amount"]))
rows.sort(key=lambda r: (r["city"], -float(r["amount"])))
print(len(rows), rows[0]["id"], sum(map(sum, groups.values())))
