"""The sandbox runtime as a process of its own, served as CRI v1."""
