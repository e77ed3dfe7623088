"""ResourceQuotas. What a status says: `status` (pure). `controller` counts and writes; it starts with `first_use`."""
