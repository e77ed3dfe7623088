from .shutdown.decide import grace_periods as grace_periods
