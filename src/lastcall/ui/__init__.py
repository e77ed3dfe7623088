"""The live page: what a cluster that stays does now, and how each of its Pods ends, in a browser on this machine."""
