"""What kind has other words for: `create cluster`, `delete cluster`, `get clusters`, `load …`."""
