"""Deployments. Pure: `revisions`, `rolling`, `scaling`, `status`. `controller` acts."""
