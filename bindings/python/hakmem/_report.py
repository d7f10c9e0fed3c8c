"""Report files as text, and the difference of two of them."""

import json

from hakmem import _where

SCHEMA = 1
AMOUNTS = {"live_bytes": int, "live_blocks": int}
STATS = """live_bytes big_bytes cached_bytes released_bytes idle_bytes metadata_bytes resident_bytes
    resident_ours_bytes peak_bytes committed_bytes hard_limit failures"""
# What is read of a report. `...` stands for any key.
SHAPE = {
    "hakmem": str,
    "python": str,
    "command": [str],
    "pid": int,
    "cpu_seconds": float,
    "peak_resident_bytes": int,
    "status": dict.fromkeys(("raw", "mem", "obj", "arena", "why"), str),
    "stats": dict.fromkeys(STATS.split(), int),
    "labels": {...: AMOUNTS},
    "wrapped": {...: {"allocations": int, "bytes": int}},
}
SITES = [{"file": str, "line": int, "function": str, "asked_bytes": int, **AMOUNTS}]


def has_shape(value, shape):
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(v, shape[0]) for v in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        keys = value if ... in shape else shape
        return all(k in value and has_shape(value[k], shape.get(k, shape.get(...))) for k in keys)
    return isinstance(value, shape) and (shape is not int or abs(value) < 1 << 64)


def load(path):
    """A report; ValueError if the file is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            report = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a report of hakmem ({error})") from None
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise ValueError(f"{path}: not a report of hakmem, or of another version")
    if not has_shape(report, SHAPE) or not has_shape(report.get("sites", []), SITES):
        raise ValueError(f"{path}: a report of hakmem, but parts of it are not there")
    return report


def amount(n):
    """Bytes for people; MiB keep two digits so that small changes show."""
    if abs(n) >= 1 << 20:
        return f"{n / (1 << 20):,.2f} MiB"
    return f"{n / 1024:,.1f} KiB" if abs(n) >= 1024 else f"{n} B"


def resident(stats):
    """The parts of the resident memory, by name; they sum to `resident_bytes`. Committed memory that nobody
    wrote to yet is not resident: "untouched" is negative."""
    ours = {
        "live": stats["live_bytes"] - stats["big_bytes"],
        "large": stats["big_bytes"],
        "cached": stats["cached_bytes"] - stats["released_bytes"],
        "purgeable": stats["idle_bytes"],
        "metadata": stats["metadata_bytes"],
    }
    untouched = stats["resident_ours_bytes"] - sum(ours.values())
    return {
        **ours,
        "untouched": untouched,
        "not ours": stats["resident_bytes"] - stats["resident_ours_bytes"],
    }


def resident_line(stats):
    """Live: small blocks in use. Large: blocks above 1 MiB. Cached: free blocks in slabs. Purgeable: pages
    that belong to nobody now."""
    parts = ", ".join(f"{name} {amount(n)}" for name, n in resident(stats).items())
    return f"resident {amount(stats['resident_bytes'])}: {parts}"


def domains_line(status):
    names = ("raw", "mem", "obj", "arena")
    return ", ".join(f"{name} {status[name]}" for name in names)


def rows(header, lines):
    """A table: first column to the left, the others to the right."""
    widths = [max(len(str(line[i])) for line in [header, *lines]) for i in range(len(header))]

    def form(line):
        cells = [str(c).rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        return "  " + "  ".join([str(line[0]).ljust(widths[0]), *cells]).rstrip()

    return [form(header), *map(form, lines)]


def text(report):
    """The whole report."""
    stats, status = report["stats"], report["status"]
    command = " ".join(report["command"])
    lines = [
        f"hakmem {report['hakmem']}: {command if len(command) < 90 else command[:87] + '...'}",
        f"  Python {report['python'].partition(' ')[0]}, process {report['pid']}, "
        f"{report['cpu_seconds']:.2f} s of CPU, "
        f"peak resident {amount(report['peak_resident_bytes'])}",
        f"  domains: {domains_line(status)}",
    ]
    if status["why"]:
        lines.append(f"  note: {status['why']}")
    for table in (_where.label_rows(report), _where.site_rows(report)):
        if table:
            lines += ["", *table]
    lines.append("")
    for domain, count in report["wrapped"].items():
        lines.append(
            f"  {domain}, wrapped: {count['allocations']:,} allocations, {count['bytes']:,} bytes asked for"
        )
    lines.append(f"  peak live {amount(stats['peak_bytes'])}, committed {amount(stats['committed_bytes'])}")
    if stats["hard_limit"]:
        lines.append(f"  limit {amount(stats['hard_limit'])}, {stats['failures']:,} allocations refused")
    lines.append("  " + resident_line(stats))
    return "\n".join(lines)


def difference(before, after):
    """What changed between two snapshots, the largest change first."""
    lines = rows(
        ("label", "change", "blocks", "now"),
        [
            (d.key, f"{d.size_diff:+,}", f"{d.count_diff:+,}", f"{d.size:,}")
            for d in after.compare_to(before)
            if d.size_diff or d.count_diff
        ],
    )
    for key in ("live_bytes", "peak_bytes", "committed_bytes", "resident_bytes"):
        a, b = before.stats[key], after.stats[key]
        lines.append(f"  {key.removesuffix('_bytes')}: {amount(a)} -> {amount(b)} ({b - a:+,})")
    return "\n".join(lines)
