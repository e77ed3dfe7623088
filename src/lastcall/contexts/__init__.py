"""Commands that are clients of somebody's cluster: which one, as whom, and what is wrong when it does not answer.

    @click.command()
    @context_options()
    @click.option("--all-namespaces", "-A", is_flag=True)
    def trace(asked: ContextOptions, all_namespaces: bool) -> None:
        chosen = choose(asked)                       # UserError: no such context, not YAML …
        asyncio.run(_trace(chosen, "" if all_namespaces else chosen.namespace))

    async def _trace(chosen: Chosen, namespace: str) -> None:
        async with connected(chosen, agent="lastcall-trace") as cluster:   # UserError, WorldError, with what to do
            pods = await cluster.client.list(PODS, namespace)

`options.py` has the options, `connecting.py` the rest. What the client raises inside the block (StatusError,
ConnectionLost) leaves it as UserError or WorldError with its explanation; `explained` gives the same text to those who
go on.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
