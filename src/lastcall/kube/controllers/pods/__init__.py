"""Help the owners of Pods: make and delete them (`control`), count them (`owned`), report them (`routes`)."""
