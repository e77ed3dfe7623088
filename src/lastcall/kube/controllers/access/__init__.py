"""What gives access: certificates and aggregated ClusterRoles."""
