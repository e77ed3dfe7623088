"""What the controller is called in Events, logs and options."""

COMPONENT = "horizontal-pod-autoscaler"
