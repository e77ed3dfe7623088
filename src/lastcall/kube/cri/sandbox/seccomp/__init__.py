"""System call filters of containers, compiled here to BPF. Standard library only: the shim uses it."""

# check: standard library
