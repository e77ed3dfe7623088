from .checks import checks_of as checks_of
from .checks import summary_of as summary_of
from .options import RunOptions as RunOptions
from .session import Cluster as Cluster
from .session import Session as Session
