"""Text as Go and Kubernetes read it: JSON, YAML, numbers, times, schedules."""
