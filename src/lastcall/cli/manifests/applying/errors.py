"""What the Python API raises. Texts are for people: what happened, what is known of it, and the fix."""


class LastcallError(Exception):
    """Any failure of the Python API."""


class ClusterError(LastcallError):
    """The cluster cannot start, has ended, or does not answer."""


class InvalidManifest(LastcallError):
    """A manifest that cannot be read, or that the API server refuses; the text names file, line and field."""


class NotReady(LastcallError):
    """What was waited for did not become Ready; the text reports its Pods, their Events and what they printed."""


class StillThere(LastcallError):
    """What was deleted is not gone in time; the text tells what holds it."""


class NoRequests(LastcallError):
    """Asked for lost requests where none were sent."""
