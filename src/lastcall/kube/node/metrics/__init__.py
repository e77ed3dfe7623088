"""What a node's parts counted, by the names of Kubernetes; imported when somebody asks."""
