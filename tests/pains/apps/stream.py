"""Sends an event every 100 ms for three seconds on /events, in chunks; leaves at once on SIGTERM."""

import os
import signal
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.headers.get("X-Request-ID")
        if name:
            print(name, "begun", flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(30 if self.path == "/events" else 1):
            self.wfile.write(b"c\r\ndata: tick\n\n\r\n")
            time.sleep(0.1 if self.path == "/events" else 0)
        self.wfile.write(b"0\r\n\r\n")
        if name:
            print(name, "answered", flush=True)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
Server(("0.0.0.0", 8080), Handler).serve_forever()
