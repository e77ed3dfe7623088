"""The OpenAPI documents of what is served, made of the field facts in `lastcall.kube.api.schema.types`."""
