"""pods/proxy, services/proxy and nodes/proxy: a request passed on to a Pod, an endpoint or a kubelet, and its answer.

Imported by the first such request. What others send is taken for hostile: `paths.py`, `headers.py`, `links.py` and
`html.py` decide what may pass, as kube-apiserver does.
"""
