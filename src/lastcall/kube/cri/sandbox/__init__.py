"""Our own container runtime: shim, images and the pod network behind the CRI verbs."""
