"""What is wrong with manifests, told without a cluster: pure functions over objects, each rule by a stable id."""
