"""An HTTP server that appends each request to a file as a line of JSON. Prints its port."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        line = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
        with open(sys.argv[1], "a") as out:
            out.write(json.dumps(line) + "\n")
        self.send_response(500 if "fail" in self.path else 302 if "moved" in self.path else 204)
        if "moved" in self.path:
            self.send_header("Location", "/followed")
        self.end_headers()

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
