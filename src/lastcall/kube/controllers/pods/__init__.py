"""Pods for the controllers that own Pods: made and deleted (`control`), counted (`owned`), told of (`routes`)."""
