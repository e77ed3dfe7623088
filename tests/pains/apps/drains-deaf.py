"""On SIGTERM it closes its port at once, and drains for six seconds."""

import signal
import socketserver
import threading
import time

server = socketserver.ThreadingTCPServer(("0.0.0.0", 8080), socketserver.StreamRequestHandler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(0.1)
server.server_close()
time.sleep(6)
