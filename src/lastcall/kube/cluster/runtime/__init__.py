"""What a cluster needs of its container runtime, where that is not the sandbox runtime."""
