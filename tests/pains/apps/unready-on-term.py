"""On SIGTERM /ready answers 503; it stops listening 300 ms later, and leaves."""

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

stopping = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if stopping.is_set() and self.path == "/ready" else 200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close() waits for the answers that are under way
    request_queue_size = 128


def stop(*_):
    stopping.set()
    threading.Timer(0.3, server.shutdown).start()


server = Server(("0.0.0.0", 8080), Handler)
signal.signal(signal.SIGTERM, stop)
server.serve_forever(poll_interval=0.1)
server.server_close()
