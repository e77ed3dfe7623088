"""Real components of Kubernetes, started and ended by a test (`$KUBERNETES_HOME/bin`)."""
