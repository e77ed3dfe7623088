"""The OpenAPI documents of what is served, made of the field facts in `lastcall.api.schema.types`."""
