from .asked import AskedPage as AskedPage
from .server import NotListening as NotListening
from .server import PageServer as PageServer
from .source import PageClient as PageClient
from .source import StayingCluster as StayingCluster
from .traced import TracedCluster as TracedCluster
from .watching import Watching as Watching
