"""Rules of the kinds of storage drivers, devices, Service addresses, flow control and certificates."""
