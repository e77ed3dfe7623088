"""A cluster whose containers are somebody else's runtime's (`--container-runtime-endpoint`)."""
