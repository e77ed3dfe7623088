"""Admission. `chain` is the way of an object through all plugins; `classes`, `limits`, `storage` are pure."""
