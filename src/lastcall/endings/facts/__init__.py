"""What the records report about containers, processes and the Pod, without any other source. Pure."""
