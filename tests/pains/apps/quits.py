"""Stops listening when somebody asks for /quit, as a preStop hook does, and leaves on SIGTERM."""

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
        if self.path == "/quit":
            threading.Thread(target=server.shutdown).start()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close() waits for the answers that are under way
    request_queue_size = 128


def leave(*_):
    leaving.set()
    threading.Thread(target=server.shutdown).start()


leaving = threading.Event()
server = Server(("0.0.0.0", 8080), Handler)
signal.signal(signal.SIGTERM, leave)
server.serve_forever(poll_interval=0.1)
server.server_close()
leaving.wait()
