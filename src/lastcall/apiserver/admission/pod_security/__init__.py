"""Pod Security Standards. What labels ask of Pods: `decide`; the rules: `baseline`, `restricted`. All pure."""
