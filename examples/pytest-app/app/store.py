"""The store: keys and values over HTTP, in memory. It stands for the database that a real application has."""

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

values = {}


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, value=None):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            self.answer(200, sorted(values))
        elif self.path in values:
            self.answer(200, values[self.path])
        else:
            self.answer(404)

    def do_PUT(self):
        values[self.path] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() waits for requests under way
    request_queue_size = 128  # of the usual 5, connections of the application are dropped when this machine is busy


server = Server(("", 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print("the store listens", flush=True)
server.serve_forever(poll_interval=0.1)
server.server_close()
print("the store ends", flush=True)
