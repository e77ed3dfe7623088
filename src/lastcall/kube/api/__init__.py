"""The Kubernetes API as data: kinds, defaulting, validation, selectors, quantities, patches, Status errors. No I/O."""
