"""What lastcall uses of aiohttp that aiohttp does not promise: private names, single modules, what an import does.

`client` is aiohttp imported without the machine's authorities, `server` the parts of `aiohttp.web` by their modules,
`connector` connections that something else dials. No other module names a private part of aiohttp or imports it by its
own name (`tests/unit/world/test_aiohttp_inside.py`, which also holds that the installed release has them all).
"""
