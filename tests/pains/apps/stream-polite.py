"""Sends an event every 100 ms for three seconds on /events, in chunks; on SIGTERM it ends each with its last chunk."""

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

stopping = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.headers.get("X-Request-ID")
        if name:
            print(name, "begun", flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(30 if self.path == "/events" else 1):
            self.wfile.write(b"c\r\ndata: tick\n\n\r\n")
            if self.path == "/events" and stopping.wait(0.1):
                break
        self.wfile.write(b"0\r\n\r\n")
        if name:
            print(name, "answered", flush=True)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close() waits for the answers that are under way
    request_queue_size = 128


def stop(*_):
    stopping.set()
    threading.Thread(target=server.shutdown).start()


server = Server(("0.0.0.0", 8080), Handler)
signal.signal(signal.SIGTERM, stop)
server.serve_forever(poll_interval=0.1)
server.server_close()
