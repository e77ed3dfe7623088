"""May a Pod run on this node: `decide`; whom a critical one pushes off: `critical_pods` (both pure). `manager` acts."""
