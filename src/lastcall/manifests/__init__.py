"""Manifests: read and checked (`read`), created (`apply`), what owns Pods (`workloads`), what nobody acts on."""
