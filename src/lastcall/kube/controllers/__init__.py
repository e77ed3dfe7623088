"""One file per controller; each is a client of the API and nothing else."""
