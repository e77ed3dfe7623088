"""The lesson on how a Pod stops: what each step does on the cluster behind the page, and what was to be seen of it."""
