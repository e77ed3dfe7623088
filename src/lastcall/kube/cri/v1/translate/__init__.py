"""Between the messages of CRI v1 and the structs of `lastcall.kube.cri.api`, both ways.

`..._of(message)` reads one, `..._message(struct)` writes one.
"""
