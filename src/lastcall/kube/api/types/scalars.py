"""Scalars of the API with a notation of their own. Made by tools/make_types.py."""

Quantity = str
"""Amount of a resource as the API server answers it: `100m`, `1Gi`. (`lastcall.kube.api.quantity.parse_quantity`)"""

IntOrString = int | str
"""A number, or a name or percentage: ports (`8080`, `http`), `maxUnavailable` (`1`, `25%`)."""

Time = str
"""RFC 3339 in UTC, with whole seconds (`meta.v1.Time`) or microseconds (`meta.v1.MicroTime`)."""
