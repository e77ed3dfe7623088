"""StatefulSets. What is done next: `decide`; whose the claims are: `claims` (both pure). `controller` acts."""
