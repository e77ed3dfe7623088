from .accounted import account_to_wire as account_to_wire
from .followed import lives_to_wire as lives_to_wire
from .followed import traced_to_wire as traced_to_wire
from .picture import picture as picture
from .texts import state_to_wire as state_to_wire
from .values import Values as Values
