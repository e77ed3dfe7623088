"""The fields of all kinds (`schema.json`, read by `types`), and objects by them: `checks`, `pruning`, `decoding`."""
