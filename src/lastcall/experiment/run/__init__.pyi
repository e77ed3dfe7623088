from .checks import checks_of as checks_of
from .checks import summary_of as summary_of
from .embedded import Cluster as Cluster
from .embedded import EmbeddedRun as EmbeddedRun
from .options import RunOptions as RunOptions
from .session import RunSession as RunSession
