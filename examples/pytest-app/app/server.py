"""The application: greets with the text that its store holds. It is ready when the store has the right schema.

On SIGTERM it answers what is under way, and ends. New requests stop before that: the preStop hook in the manifest waits
until no proxy sends any more.
"""

import json
import os
import signal
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = 2
STORE = f"http://{os.environ['STORE_SERVICE_HOST']}:{os.environ['STORE_SERVICE_PORT']}"


def stored(key):
    with urllib.request.urlopen(f"{STORE}/{key}", timeout=2) as answer:
        return json.load(answer)


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        try:
            if self.path == "/ready":
                schema = stored("schema")
                self.answer(200 if schema == SCHEMA else 503, f"schema {schema}\n")
            else:
                self.answer(200, stored("greeting") + "\n")
        except OSError as error:
            print(f"the store does not answer: {error}", flush=True)
            self.answer(503, f"the store does not answer: {error}\n")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() waits for requests under way
    request_queue_size = 128


server = Server(("", 8080), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print("the application listens", flush=True)
server.serve_forever(poll_interval=0.1)
server.server_close()
print("the application ends", flush=True)
