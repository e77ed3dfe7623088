"""The fields of all kinds (`schema.json`, read by `types`), and whether objects have them: `checks`, `decoding`."""
