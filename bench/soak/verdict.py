"""What a series of samples comes to."""

import statistics

DRIFT = 0.5  # percent over the half that is judged which count as none
LEAST = 4  # samples that are judged
CALLS = 1e-7  # an operation


def slope(xs, ys):
    """By Theil and Sen: the median of the slopes of all pairs, which single spikes do not move."""
    slopes = [
        (ys[j] - ys[i]) / (xs[j] - xs[i])
        for i in range(len(xs))
        for j in range(i + 1, len(xs))
        if xs[j] != xs[i]
    ]
    return statistics.median(slopes) if slopes else 0.0


def drift(samples, key):
    """Percent that a figure grew by, over the time of these samples."""
    xs, ys = [s["seconds"] for s in samples], [s[key] for s in samples]
    middle = statistics.median(ys)
    return slope(xs, ys) * (xs[-1] - xs[0]) / middle * 100 if middle else 0.0


def second_half(samples):
    """By operations: a machine that was busy at first did few of them by half time, and the heap was not at rest."""
    middle = (samples[0]["ops"] + samples[-1]["ops"]) / 2
    first = next(i for i, s in enumerate(samples) if s["ops"] >= middle)
    return samples[min(first, len(samples) - LEAST) :]


def verdict(samples, counted):
    """The figures of the second half, and the goals that they miss."""
    half = second_half(samples)
    resident = [s["resident_bytes"] for s in half]
    operations = half[-1]["ops"] - half[0]["ops"]
    found = {
        "operations": half[-1]["ops"],
        "resident_mib": statistics.median(resident) / 2**20,
        "drift_percent": drift(half, "resident_bytes"),
        "variation_percent": statistics.pstdev(resident) / statistics.mean(resident) * 100,
        "tables_percent": drift(half, "metadata_bytes"),
        "mappings_percent": drift(half, "mappings"),
        "calls": None,
    }
    missed = []
    if found["drift_percent"] > DRIFT:
        missed.append(f"resident memory drifts: {found['drift_percent']:+.2f} %")
    for key, name in (("tables_percent", "tables"), ("mappings_percent", "mappings")):
        if found[key] > DRIFT:
            missed.append(f"{name} grow: {found[key]:+.2f} %")
    if counted:
        found["calls"] = (half[-1]["os_calls"] - half[0]["os_calls"]) / max(operations, 1)
        if found["calls"] > CALLS:
            missed.append(f"{found['calls']:.1e} system calls an operation, not {CALLS:.0e}")
    return {**found, "missed": missed}
