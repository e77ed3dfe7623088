"""Pods as the kubelet sees them: questions to the spec, resources, control groups, user ids, what a runtime knows.
Pure.
"""
