"""Whether a report has a stack with these functions, the innermost first, others between: other_stacks.py REPORT NAME..."""

import json
import sys


def has(names, wanted):
    rest = iter(names)
    return all(name in rest for name in wanted)


def main(report, *wanted):
    with open(report) as file:
        contexts = json.load(file)["contexts"]
    stacks = [[context["frames"][i]["function"] for i in stack["frames"]] for context in contexts for stack in context["stacks"]]
    if not any(has(names, wanted) for names in stacks):
        sys.exit(f"{report}: no stack {' < '.join(wanted)}; there are\n" + "\n".join(" < ".join(s) for s in stacks[:10]))


main(*sys.argv[1:])
