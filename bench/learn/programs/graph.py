"""A graph of objects that is built, walked and dropped again and again."""

import sys


class Node:
    def __init__(self, name):
        self.name = name
        self.edges = []


for turn in range(int(sys.argv[1]) if len(sys.argv) > 1 else 12):
    nodes = [Node(f"node {turn} {i}") for i in range(60000)]
    for i, node in enumerate(nodes):
        node.edges.extend(nodes[(i * k) % len(nodes)] for k in (3, 7, 11))
    seen = sum(len(node.edges) for node in nodes)
    text = ",".join(node.name for node in nodes)
    del nodes, node
