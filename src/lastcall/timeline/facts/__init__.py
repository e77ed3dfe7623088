"""What the records tell of containers, processes and the Pod, and was asked of nobody else. Pure."""
