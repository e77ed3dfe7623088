"""The validation rules, one module per kind or part. Pure functions; the entry is `lastcall.kube.api.validation`."""
