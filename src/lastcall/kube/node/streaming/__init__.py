"""The kubelet's exec, attach, run and portForward endpoints."""
