"""Run the containers of a cluster by an existing runtime (`--container-runtime-endpoint`)."""
