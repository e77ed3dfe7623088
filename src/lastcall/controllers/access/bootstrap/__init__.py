"""Bootstrap tokens: cluster-info is signed with them, and those that are over are deleted."""
