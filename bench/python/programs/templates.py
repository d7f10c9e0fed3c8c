"""Renders pages from nested loops over rows, with escaping, as a web application does."""

import html
import string
import sys

scale = float(sys.argv[1])
row = string.Template("<tr id='$id'><td>$name</td><td>$price</td>$cells</tr>")
cell = "<td class='{}'>{}</td>"
items = [{"id": i, "name": f"<item & {i}>", "price": i * 1.25} for i in range(400)]
total = 0
for _ in range(max(1, int(80 * scale))):
    parts = []
    for item in items:
        cells = "".join(cell.format("odd" if j % 2 else "even", j * item["id"]) for j in range(10))
        parts.append(
            row.substitute(
                id=item["id"], name=html.escape(item["name"]), price=f"{item['price']:.2f}", cells=cells
            )
        )
    total += len("<table>" + "\n".join(parts) + "</table>")
print(total)
