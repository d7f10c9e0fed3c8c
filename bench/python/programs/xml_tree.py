"""Builds, writes, parses and searches XML."""

import sys
import xml.etree.ElementTree as tree

scale = float(sys.argv[1])
root = tree.Element("library")
for i in range(3000):
    book = tree.SubElement(root, "book", id=str(i), lang="en")
    tree.SubElement(book, "title").text = f"Title number {i}"
    tree.SubElement(book, "author", role="first").text = f"Author {i % 100}"
text = tree.tostring(root)
total = 0
for _ in range(max(1, int(16 * scale))):
    parsed = tree.fromstring(text)
    total += sum(len(e.text) for e in parsed.iter("title")) + len(parsed.findall("./book[@id='77']/author"))
    total += len(tree.tostring(parsed))
print(total)
