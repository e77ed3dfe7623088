"""The file system of a container."""
