"""Images: pulled, imported or made (`pull`, `from_files`, `from_host`), kept as an OCI layout, unpacked for
containers.

Pure: `reference` reads names, `platform` chooses, `registry_auth` answers challenges. `store` puts it together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
