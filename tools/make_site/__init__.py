"""The documentation as a site: `make site` builds it into build/site. Zensical; no request to another host.

`pages.py` takes the guides over, `reference.py` makes what the code says, `playing.py` adds the tour and stories, and
`links.py` looks whether everything that is linked is there.
"""
