"""The scheduler: binds Pods to nodes through the binding subresource."""
