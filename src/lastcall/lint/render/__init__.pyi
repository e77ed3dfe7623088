from .text import plain as plain
from .text import text as text
