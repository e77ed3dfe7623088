"""NetworkPolicies: which connections the Pods of a node may have."""
