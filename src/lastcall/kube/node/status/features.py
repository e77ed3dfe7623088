"""What a Kubernetes version puts into Pod status: the same table as everything else (`versions.FEATURES`)."""

from lastcall.kube.node.versions import Behaviour as StatusFeatures
from lastcall.kube.node.versions import behaviour_at as status_features

__all__ = ["StatusFeatures", "status_features"]
