"""Searches and rewrites log text by regular expressions."""

import re
import sys

scale = float(sys.argv[1])
lines = [
    f"2024-03-{i % 28 + 1:02} 12:{i % 60:02}:00 host{i % 9} service[{i}]: "
    f"user=u{i % 100} took={i % 977}ms url=/a/{i % 50}/b?q={i}"
    for i in range(4000)
]
line = re.compile(r"^(\S+) (\S+) (\w+) (\w+)\[(\d+)\]: user=(\w+) took=(\d+)ms url=(\S+)$")
words = re.compile(r"[a-z]+|\d+")
total = 0
for _ in range(max(1, int(22 * scale))):
    for text in lines:
        groups = line.match(text).groups()
        total += len(groups) + int(groups[6]) + len(words.findall(text))
        total += len(re.sub(r"\d+", "#", groups[7]))
print(total)
