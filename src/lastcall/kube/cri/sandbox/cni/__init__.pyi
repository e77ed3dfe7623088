from .conf import CNIConfigError as CNIConfigError
from .network import DEFAULT_BIN_DIRS as DEFAULT_BIN_DIRS
from .network import check as check
from .network import conf_dir_of as conf_dir_of
