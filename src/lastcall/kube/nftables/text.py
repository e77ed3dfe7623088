"""A transaction as text for libnftables and the `nft` program."""

from collections.abc import Iterable

from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    AddRule,
    AddSet,
    Command,
    DeleteChain,
    DeleteElements,
    DeleteSet,
    FlushChain,
    SetKey,
    SetValue,
    Transaction,
)
from lastcall.kube.nftables.statements import FAMILY, text_of

_SERVICE = "type ipv4_addr . inet_proto . inet_service"
_SHAPES = {
    "addresses": "type ipv4_addr;",
    "address pairs": "type ipv4_addr . ipv4_addr;",
    "address ranges": "type ipv4_addr; flags interval;",
    "services": f"{_SERVICE};",
    "service verdicts": f"{_SERVICE} : verdict;",
    "service slots": ("typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport;"),
    "sources": "type ipv4_addr; size 65535; flags dynamic,timeout; timeout {timeout}s;",
    "address verdicts": "type ipv4_addr : verdict;",
}
_MAPS = ("service verdicts", "service slots", "address verdicts")


def text_of_transaction(transaction: Transaction, table: str) -> str:
    """Format a transaction as text, one command a line."""
    lines = [f"add table {FAMILY} {table}"]
    if transaction.replace:
        lines += [f"delete table {FAMILY} {table}", lines[0]]
    return "\n".join([*lines, *(_line(command, table) for command in transaction.commands), ""])


def _line(command: Command, table: str) -> str:
    where = f"{FAMILY} {table}"
    match command:
        case AddSet(set_):
            kind = "map" if set_.shape in _MAPS else "set"
            return f"add {kind} {where} {set_.name} {{ {_SHAPES[set_.shape].format(timeout=set_.timeout)} }}"
        case AddChain(chain):
            hook = chain.hook
            if hook is None:
                return f"add chain {where} {chain.name}"
            body = f"type {hook.type} hook {hook.hook} priority {hook.priority}; policy accept;"
            return f"add chain {where} {chain.name} {{ {body} }}"
        case DeleteElements(set_name, keys):
            return f"delete element {where} {set_name} {{ {_listed(_key(key) for key in keys)} }}"
        case FlushChain(name):
            return f"flush chain {where} {name}"
        case AddRule(chain_name, rule):
            return f"add rule {where} {chain_name} {text_of(rule)}"
        case AddElements(set_name, elements):
            return f"add element {where} {set_name} {{ {_listed(_element(k, v) for k, v in elements)} }}"
        case DeleteChain(name):
            return f"delete chain {where} {name}"
        case DeleteSet(name):
            return f"delete set {where} {name}"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)


def _key(key: SetKey) -> str:
    first, _, last = str(key[0]).partition("-")
    if last:
        return first if first == last else f"{first}-{last}"
    return " . ".join(part.lower() if isinstance(part, str) else str(part) for part in key)


def _element(key: SetKey, value: SetValue) -> str:
    if value is None:
        return _key(key)
    return f"{_key(key)} : {value if isinstance(value, str) else f'{value[0]} . {value[1]}'}"
