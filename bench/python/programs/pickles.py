"""Pickles and unpickles a mixed structure, as task queues and caches do."""

import datetime
import pickle
import sys

scale = float(sys.argv[1])
day = datetime.date(2024, 1, 1)
data = {
    i: (
        f"key {i}",
        [i, i + 1, str(i)],
        {"when": day + datetime.timedelta(days=i % 500), "set": frozenset((i, i % 7))},
    )
    for i in range(3000)
}
total = 0
for _ in range(max(1, int(40 * scale))):
    packed = pickle.dumps(data, protocol=4)
    total += len(packed) + len(pickle.loads(packed))
print(total)
