"""A cache of sessions with a bound: old ones fall out, new ones come, all alive for a while."""

import collections
import sys

scale = float(sys.argv[1])
cache = collections.OrderedDict()
hits = 0
state = 12345
for i in range(int(260_000 * scale) + 10):
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    key = f"session-{state >> 8 & 0x3FFFF if i % 3 else state >> 8 & 0xFFF}"
    if key in cache:
        hits += 1
        cache.move_to_end(key)
        cache[key]["visits"] += 1
    else:
        cache[key] = {"visits": 1, "path": ["/", f"/{i % 100}"], "token": key * 2}
        if len(cache) > 20_000:
            cache.popitem(last=False)
print(len(cache), hits)
