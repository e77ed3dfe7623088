from .failures import ends_of_all as ends_of_all
from .failures import group_alike as group_alike
from .object_events import what_refuses_the_delete as what_refuses_the_delete
from .why_not_ready import in_short as in_short
from .why_not_ready import is_ready as is_ready
from .why_not_ready import why_still_there as why_still_there
from .why_not_ready import without_preemption_note as without_preemption_note
