"""The directory on the host's disk for what containers write."""
