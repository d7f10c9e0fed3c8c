"""Deep copies of configurations, and data classes made from them."""

import copy
import dataclasses
import sys

scale = float(sys.argv[1])


@dataclasses.dataclass
class Setting:
    name: str
    values: list
    options: dict = dataclasses.field(default_factory=dict)


config = {f"s{i}": Setting(f"s{i}", [i, str(i), (i, i)], {"a": {"b": [i] * 5}}) for i in range(250)}
total = 0
for i in range(max(1, int(70 * scale))):
    mine = copy.deepcopy(config)
    mine["s1"].options["a"]["b"].append(i)
    total += len(dataclasses.asdict(mine["s1"])["options"]["a"]["b"]) + len(mine)
print(total, len(config["s1"].options["a"]["b"]))
