from .manager import DISABLED_BY_DEFAULT as DISABLED_BY_DEFAULT
from .manager import NAMES as NAMES
from .manager import run_controllers as run_controllers
from .ownership import controller_of as controller_of
