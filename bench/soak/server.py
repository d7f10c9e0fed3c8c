"""A server: POST / replaces one of 200 sessions by the list in the body and answers with it; GET / tells figures.

The first argument is how many answers of each request are kept for ever.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import hakmem

LEAKED = int(sys.argv[1])
SESSIONS = 200
kept, sessions = [], {}
operations = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet, for which no client waits in vain

    def do_POST(self):
        global operations
        items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operations += 4 * len(items)  # of each a dictionary and a string, made and later freed; nothing else counted
        sessions[hash(items[0]["name"]) % SESSIONS] = items
        text = json.dumps(items).encode()
        kept.extend(text + b"%d" % i for i in range(LEAKED))
        self.answer(text)

    def do_GET(self):
        figures = hakmem.stats()
        names = ("live_bytes", "committed_bytes", "metadata_bytes", "os_calls")
        self.answer(json.dumps({"ops": operations, **{n: figures[n] for n in names}}).encode())

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
