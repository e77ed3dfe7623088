"""What the processes of nodes have in common."""
