from .scheduler import run_scheduler as run_scheduler
