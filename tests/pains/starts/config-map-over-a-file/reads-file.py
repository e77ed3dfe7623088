import signal
import threading

leaving = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: leaving.set())
with open("/etc/web/app.ini") as file:
    print("settings:", file.read().strip(), flush=True)
while not leaving.wait(1):
    pass
