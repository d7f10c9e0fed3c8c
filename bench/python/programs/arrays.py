"""Buffers of megabytes that come and go: arrays, strings, lists that grow, in sizes that recur."""

import array
import sys

scale = float(sys.argv[1])
total = 0
for i in range(max(1, int(20 * scale))):
    for j in range(20):
        total += len(bytearray(2_400_000)) + j
    large = bytearray(16_000_000)
    total += len(large)
    del large
    text = "x" * (3_000_000 + i % 7)
    total += len(text.upper())
    numbers = array.array("d", bytes(8 * 300_000))
    twice = numbers * 2
    total += len(twice) + len(numbers.tobytes())
    grown = []
    for j in range(500_000):
        grown.append(None)
    total += len(grown)
print(total)
