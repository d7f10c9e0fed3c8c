"""Counts words and pairs of words in a text: dictionaries of strings and tuples that grow."""

import collections
import sys

scale = float(sys.argv[1])
text = " ".join(f"w{(i * i + 7 * i) % 9973} and{i % 300}" for i in range(int(220_000 * scale) + 10))
words = text.split()
counts = collections.Counter(words)
pairs = collections.Counter(zip(words, words[1:], strict=False))
index = collections.defaultdict(list)
for position, word in enumerate(words):
    index[word].append(position)
longest = max(index.values(), key=len)
print(len(counts), len(pairs), pairs.most_common(1)[0][1], sum(longest) % 99991)
