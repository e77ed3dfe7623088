"""Measure how long the machine stood still: a thread that is woken late was not given a core."""

import threading
import time

INTERVAL = 0.05
"""Seconds between two beats."""
_sleep = time.sleep
"""The real one: pure tests replace it, to notice that they sleep, and one process may run tests of every kind."""


class Heartbeat:
    """A thread that notes how late it is woken. `longest` is the longest delay (seconds) since `reset`."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread. It ends with the process."""
        self._thread.start()

    def reset(self) -> None:
        """Begin a new measurement, for the next test."""
        self.longest = 0.0

    def _beat(self) -> None:
        last = time.monotonic()
        while True:
            _sleep(INTERVAL)
            now = time.monotonic()
            self.longest = max(self.longest, now - last - INTERVAL)
            last = now
