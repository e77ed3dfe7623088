"""Static Pods. What a manifest says: `decide` (pure). `source` reads the files of a directory."""
