"""What `/metrics` says: names, types and help of Kubernetes 1.36.2, and the text form."""
