"""Where live memory is: by part of the interpreter, and by line of Python code."""

import collections

WIDTH = 100
LABELS = 30
SITES = 20
NO_SITE = "(no Python code)"


def site_key(site, key_type):
    if not site["file"]:
        return NO_SITE
    if key_type == "filename":
        return site["file"]
    return f"{site['file']}:{site['line'] if key_type == 'lineno' else site['function']}"


def groups(report, key_type):
    """Live bytes and blocks by "label", or by "lineno", "filename" or "function" of the Python code that
    asked for them; None if the report has no such thing."""
    if key_type == "label":
        return {name: (label["live_bytes"], label["live_blocks"]) for name, label in report["labels"].items()}
    if key_type not in ("lineno", "filename", "function") or "sites" not in report:
        return None
    sums = collections.defaultdict(lambda: [0, 0])
    for site in report["sites"]:
        amounts = sums[site_key(site, key_type)]
        amounts[0] += site["live_bytes"]
        amounts[1] += site["live_blocks"]
    return {key: tuple(amounts) for key, amounts in sums.items()}


def largest(found, count):
    """The largest, and one line for all others."""
    ordered = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    if len(ordered) <= count:
        return ordered
    rest = ordered[count - 1 :]
    others = (f"({len(rest)} others)", (sum(a[0] for _, a in rest), sum(a[1] for _, a in rest)))
    return [*ordered[: count - 1], others]


def shortened(text, width):
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def label_rows(report):
    """A table of the labels, with bars."""
    found = largest(groups(report, "label"), LABELS)
    total = sum(size for _, (size, _) in found) or 1
    most = max((size for _, (size, _) in found), default=0) or 1
    lines = [f"  {'label':<24} {'live bytes':>15} {'blocks':>12} {'share':>7}"]
    bar = WIDTH - len(lines[0]) - 2
    for name, (size, blocks) in found:
        numbers = f"{size:>15,} {blocks:>12,} {100 * size / total:>5.1f} %"
        lines.append(f"  {shortened(name, 24):<24} {numbers}  {'#' * round(bar * size / most)}".rstrip())
    return lines


def site_rows(report):
    """A table of the lines of code that hold most; nothing where sites were off."""
    found = groups(report, "lineno")
    if found is None:
        return []
    functions, asked = {}, collections.Counter()
    for site in report["sites"]:
        key = site_key(site, "lineno")
        functions[key] = site["function"]
        asked[key] += site["asked_bytes"]
    total = sum(size for size, _ in found.values()) or 1
    lines = [f"  {'live bytes':>13} {'asked for':>13} {'blocks':>10} {'share':>7}  line"]
    shown = largest(found, SITES)
    rest = asked.total() - sum(asked[key] for key, _ in shown)
    for key, (size, blocks) in shown:
        function = functions.get(key, "")
        place = shortened(f"{key} {function}".rstrip(), WIDTH - len(lines[0]) + 4)
        wanted = asked.get(key, rest)
        lines.append(f"  {size:>13,} {wanted:>13,} {blocks:>10,} {100 * size / total:>5.1f} %  {place}")
    return lines
