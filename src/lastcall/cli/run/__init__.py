"""`lastcall run`: `command` and its `options`, `experiment` on a cluster of its own, `existing` on another."""
