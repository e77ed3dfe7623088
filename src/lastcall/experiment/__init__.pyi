from .child import STOP_SECONDS as STOP_SECONDS
from .child import ClusterProcess as ClusterProcess
from .child import unused_name as unused_name
from .not_simulated import Note as Note
from .not_simulated import of_dropped as of_dropped
from .not_simulated import of_manifests as of_manifests
from .workspace import Workspace as Workspace
