"""A graph of objects with references back, built and dropped: the cyclic collector at work."""

import sys

scale = float(sys.argv[1])


class Node:
    def __init__(self, key, parent):
        self.key = key
        self.parent = parent
        self.children = []
        self.data = {"key": key}


def build(parent, depth):
    node = Node(depth, parent)
    if depth:
        node.children = [build(node, depth - 1) for _ in range(4)]
    return node


def count(node):
    return 1 + sum(map(count, node.children))


total = 0
for _ in range(max(1, int(10 * scale))):
    total += count(build(None, 7))
print(total)
