from .propagation import DelayLine as DelayLine
from .sink import RecordingSink as RecordingSink
