from .addresses import AddressError as AddressError
from .addresses import Listen as Listen
from .addresses import parse_endpoint as parse_endpoint
from .addresses import parse_listen as parse_listen
from .health import Health as Health
from .serving import Asked as Asked
from .serving import Serving as Serving
