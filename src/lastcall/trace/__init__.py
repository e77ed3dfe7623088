"""On any cluster: lives of Pods, told from what its API says."""
