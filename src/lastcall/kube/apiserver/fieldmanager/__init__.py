"""Who manages which fields of an object: managedFields and server-side apply."""
