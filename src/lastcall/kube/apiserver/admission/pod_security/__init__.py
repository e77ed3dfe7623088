"""Pod Security Standards. What labels ask of Pods: `decide`; the rules: `baseline`, `restricted`. All pure."""

PREFIX = "pod-security.kubernetes.io/"
"""Of the labels that this plugin reads."""
