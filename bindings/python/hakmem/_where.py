"""Where live memory is: by part of the interpreter, and by line of Python code."""

import collections

NO_SITE = "(no Python code)"


def site_key(site, key_type):
    if not site["file"]:
        return NO_SITE
    if key_type == "filename":
        return site["file"]
    return f"{site['file']}:{site['line'] if key_type == 'lineno' else site['function']}"


def groups(parts, key_type):
    """Live bytes and blocks by "label", or by "lineno", "filename" or "function" of the Python code that
    asked for them; None if these parts of a report have no such thing."""
    if key_type == "label":
        return {name: (label["live_bytes"], label["live_blocks"]) for name, label in parts["labels"].items()}
    if key_type not in ("lineno", "filename", "function") or not ("sites" in parts or "estimates" in parts):
        return None
    sums = collections.defaultdict(lambda: [0, 0])
    for site in parts.get("sites") or parts["estimates"]:
        amounts = sums[site_key(site, key_type)]
        amounts[0] += site["live_bytes"]
        amounts[1] += site["live_blocks"]
    return {key: tuple(amounts) for key, amounts in sums.items()}
