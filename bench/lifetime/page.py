"""The tables of what run.py measured."""

import sys

import workloads as w

sys.path.insert(0, str(w.HERE.parent))
from driver import tool  # noqa: E402

KEYS = ("size", "line", "line and size", "4 frames and size", "12 frames and size")
QUALITY = {
    "precision_blocks": "precision, blocks",
    "recall_blocks": "recall, blocks",
    "precision_bytes": "precision, bytes",
    "recall_bytes": "recall, bytes",
}
OTHERS = {"peak": "peak", "untrimmed": "not trimmed"}
MIB = 1 << 20


def change(row, base, figure="resident"):
    return 100 * (row[figure] / base[figure] - 1)


def chosen(rows):
    """The key that is best in the run that the forecasts were learned from."""
    return min(KEYS, key=lambda k: rows[k]["train_resident"])


def memory(programs):
    header = ["program", "live, MiB", "in troughs", "peak", "known", "by chance", *KEYS]
    for name, p in programs.items():
        rows = p["rows"]
        base = rows["none"]
        sizes = [f"{base[f] / MIB:.2f}" for f in ("live", "resident", "peak")]
        best = chosen(rows)
        cells = [f"{change(rows[k], base):+.1f} %" for k in ("known", "chance", *KEYS)]
        cells[2 + KEYS.index(best)] = f"**{cells[2 + KEYS.index(best)]}**"
        yield [name, *sizes, *cells]
    yield header


def forecast(programs):
    header = ["program", "blocks", "long-lived", "key", "keys", "share", *QUALITY.values(), *OTHERS.values()]
    for name, p in programs.items():
        rows, about = p["rows"], p["about"]
        best = chosen(rows)
        r = rows[best]
        lasted = f"{100 * about['lasted'] / about['blocks']:.1f} %"
        quality = [f"{r[q]:.2f}" for q in QUALITY]
        others = [f"{change(r, rows['none'], f):+.1f} %" for f in OTHERS]
        yield [name, str(about["blocks"]), lasted, best, str(r["keys"]), f"{r['share']:g}", *quality, *others]
    yield header


def instructions(programs):
    calls = ["calls, one context", "two", "two, with a look-up"]
    header = ["program", "instructions an allocation", "1 % of that", *calls]
    for name, p in programs.items():
        if "calls" not in p:
            continue
        whole = p["program"]
        cells = [f"{whole:.0f}", f"{whole / 100:.1f}"] if whole else ["", ""]
        yield [name, *cells, *(f"{p['calls'][m]:.1f}" for m in ("one", "two", "lookup"))]
    yield header


def table(rows):
    *rows, header = rows
    return tool.markdown_table(header, rows) if rows else ""


def text_of(result):
    programs = result["programs"]
    parts = ["### Memory in the troughs", table(memory(programs))]
    parts += ["### The forecast that would be used", table(forecast(programs))]
    counted = table(instructions(programs))
    if counted:
        parts += ["### Instructions", counted]
    where = result["machine"]
    option = " --instructions" if counted else ""
    parts.append(
        f"`scripts/bench lifetime{option}`, {result['date']}, commit {result['commit']}, {where['cpu']}, "
        f"Linux {where['kernel']}."
    )
    return "\n\n".join(parts)


def write(result, path):
    text = text_of(result)
    if not path:
        print(text)
        return
    begin, end = "<!-- begin lifetime -->\n", "<!-- end lifetime -->\n"
    before, found, rest = path.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"lifetime: {path} has no lines '{begin.strip()}' and '{end.strip()}'")
    path.write_text(before + begin + text + "\n" + end + after)
