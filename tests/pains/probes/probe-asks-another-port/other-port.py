import http.server
import signal


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def stop(*_):
    raise SystemExit(0)


signal.signal(signal.SIGTERM, stop)
print("serving on 8080", flush=True)
http.server.ThreadingHTTPServer(("", 8080), Answer).serve_forever()
