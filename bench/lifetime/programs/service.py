"""A service that takes events as JSON: a batch is decoded as a whole, merged into profiles that stay, and
answered. A trough comes after each batch."""

import collections
import json
import random
import sys

import lifetime_python

random.seed(int(sys.argv[1]))
profiles = collections.OrderedDict()


def event():
    return {
        "id": f"user-{random.randrange(4000)}",
        "at": random.random() * 1e9,
        "tags": [f"tag{random.randrange(3000)}" for _ in range(random.randrange(1, 6))],
        "device": {"kind": random.choice("abc"), "version": f"{random.randrange(40)}.{random.randrange(10)}"},
    }


def merge(e):
    profile = profiles.pop(e["id"], None)
    if profile is None:
        profile = {"tags": collections.Counter(), "last": None, "devices": {}}
    profile["tags"].update(e["tags"])
    profile["last"] = e["at"]
    profile["devices"][e["device"]["kind"]] = e["device"]
    profiles[e["id"]] = profile
    if len(profiles) > 2000:
        profiles.popitem(last=False)
    return {"id": e["id"], "score": sum(profile["tags"].values()), "first": e["tags"][0]}


for _ in range(8):
    text = json.dumps([event() for _ in range(random.randrange(1100, 1300))])
    answers = [merge(e) for e in json.loads(text)]
    json.dumps(answers)
    del answers, text
    lifetime_python.mark()
