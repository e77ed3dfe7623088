"""What the records tell of containers, processes and the Pod, without any other source. Pure."""
