"""The error of everything that reads a kubeconfig. In a module of its own: what only writes one needs no more."""

# check: pure


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; the text names file, field and the fix."""
