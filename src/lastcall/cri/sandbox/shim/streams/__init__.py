"""Exec, Attach and PortForward: `verbs` hands descriptors over; `taps` reads outputs once, for logs and clients."""
