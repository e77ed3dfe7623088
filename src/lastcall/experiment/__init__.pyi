from .not_simulated import Note as Note
from .not_simulated import of_manifests as of_manifests
