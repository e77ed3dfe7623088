from .apply import apply as apply
from .apply import wait_ready as wait_ready
from .objects import ObjectList as ObjectList
from .objects import Objects as Objects
from .objects import pods_below as pods_below
from .readiness import HAVE_PODS as HAVE_PODS
from .wait import last_lines as last_lines
