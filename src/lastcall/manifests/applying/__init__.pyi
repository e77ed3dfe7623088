from .manifests import Manifests as Manifests
from .manifests import read as read
from .references import Named as Named
from .references import Reference as Reference
from .references import find as find
from .references import find_kind as find_kind
from .references import with_namespace as with_namespace
