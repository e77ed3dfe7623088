"""Manifests: read (`read`, `yaml_documents`), checked as an API server would (`checks`), and created (`apply`)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
