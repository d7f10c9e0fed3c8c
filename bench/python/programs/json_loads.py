"""Parses and writes JSON documents of records with nested lists and strings."""

import json
import sys

scale = float(sys.argv[1])
records = [
    {
        "id": i,
        "name": f"name {i}",
        "tags": [f"tag{i % 17}", "x", i * 3],
        "score": i / 7,
        "inner": {"a": None, "b": True},
    }
    for i in range(2000)
]
text = json.dumps(records)
total = 0
for _ in range(max(1, int(45 * scale))):
    back = json.loads(text)
    total += len(json.dumps(back)) + back[7]["id"]
print(total)
