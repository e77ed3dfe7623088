"""Which addresses the Pods of each node have: `spec.podCIDR`."""
