"""Builds 3 times 150,000 records, keeps one in a thousand, and says what of it stays resident: MiB before,
after everything else was freed, and after a trim if hakmem is in. One line of JSON."""

import gc
import json
import sys
import time


def resident():
    """Anonymous memory; programs and libraries do not count."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


def burst(count):
    kept = []
    for _ in range(3):
        records = [
            {"id": i, "name": f"name {i}", "city": f"city {i % 997}", "value": i / 3} for i in range(count)
        ]
        kept += records[::1000]
        peak = resident()
        del records
    return kept, peak


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 150_000
    result = {"start": resident()}
    kept, result["peak"] = burst(count)
    gc.collect()
    result["after"] = resident()
    if "trim" in sys.argv:
        import hakmem

        result["live"] = hakmem.stats()["live_bytes"] / (1 << 20)
        start = time.perf_counter()
        hakmem.trim()
        result["trim_ms"] = 1000 * (time.perf_counter() - start)
        result["trimmed"] = resident()
    result["kept"] = len(kept)
    print(json.dumps(result))


main()
