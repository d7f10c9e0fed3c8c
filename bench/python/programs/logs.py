"""Log records through formatters and filters into a buffer."""

import io
import logging
import sys

scale = float(sys.argv[1])
buffer = io.StringIO()
handler = logging.StreamHandler(buffer)
handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s", datefmt="%H"))
log = logging.getLogger("bench")
log.addHandler(handler)
log.setLevel(logging.INFO)
log.propagate = False
for i in range(int(38_000 * scale) + 10):
    log.info("request %d of user %s took %.3f s", i, f"u{i % 99}", i / 1000)
    log.debug("not seen %s", i)
    if i % 5000 == 0:
        buffer.seek(0)
        buffer.truncate()
print(len(buffer.getvalue()) > 0)
