"""Where a field of an object is in its file."""

from lastcall.lint.located import Spot
from lastcall.manifests import Path, Place, parsed_path


def spot_of(place: Place, path: Path) -> Spot:
    """Return where a field of the object is, or the nearest one above it."""
    line, column = place.document.position_of((*parsed_path(place.path), *path))
    return Spot(place.file, line, column, place.document.template)
