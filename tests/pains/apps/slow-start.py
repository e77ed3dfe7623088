"""Takes six seconds to start; then listens, and ends on SIGTERM."""

import signal
import socketserver
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
time.sleep(6)
socketserver.TCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("0.0.0.0", 8080), socketserver.StreamRequestHandler).serve_forever()
