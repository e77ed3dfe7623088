"""Exec, Attach and PortForward: `descriptors` hands them over; `taps` reads outputs once, for logs and clients."""
