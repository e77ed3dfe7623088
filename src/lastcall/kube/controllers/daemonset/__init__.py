"""DaemonSets. Which nodes need a Pod and which Pods go: `decide` (pure). `controller` acts."""
