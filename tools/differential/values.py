"""Values for a schema, valid ones and those that are not, and changes of an object that its schema suggests."""

import copy
from random import Random
from typing import Any

from differential.kinds import Schemas

STRINGS = (
    "", "a", "a-b", "A", "a_b", "a.b", "-a", "a" * 64, "a" * 254, "é", "a b", " ", "0", "1Gi", "100m", "-1", "1e3",
    "10%", "http", "TCP", "Always", "Never", "IfNotPresent", "None", "ClusterFirst", "10.0.0.1", "::1", "300.1.1.1",
    "10.0.0.0/8", "example.com/a", "/", "a/b", "/tmp", "../a", "2024-01-01T00:00:00Z", "30s", "*", "a,b", "a=b", "YQ==",
    "true", "null", "kubernetes.io/x", "v1", "Pod", "\n", "$(A)", "RollingUpdate", "Recreate", "OnDelete",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 80, 443, 65535, 65536, 100, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 1.5, 1e3)
_MOST_DEPTH = 7


def value_of(schemas: Schemas, schema: dict[str, Any], random: Random, depth: int = 0) -> Any:
    """Return a value of the schema's type; what is in it may be wrong."""
    schema = schemas.resolved(schema)
    if schema.get("enum") and random.random() < 0.7:
        return random.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string") or schema.get("oneOf"):
        return random.choice((random.choice(NUMBERS), random.choice(("25%", "0", "http", "1", "", "x"))))
    match schema.get("type"):
        case "string":
            return _string(schema.get("format", ""), random)
        case "integer":
            return random.choice(NUMBERS)
        case "number":
            return random.choice((0, 1.5, -1))
        case "boolean":
            return random.random() < 0.5
        case "array":
            if depth > _MOST_DEPTH:
                return []
            one = [value_of(schemas, schema["items"], random, depth + 1) for _ in range(random.choice((0, 1, 1, 2)))]
            return one * 2 if one and random.random() < 0.1 else one
        case "object" | None:
            return _object(schemas, schema, random, depth)
    return None


def _string(form: str, random: Random) -> str:
    if form == "date-time" and random.random() < 0.8:
        return random.choice(("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456Z", "2024-01-01", "x"))
    if form == "byte" and random.random() < 0.7:
        return random.choice(("YQ==", "YQ", "%", ""))
    return random.choice(STRINGS)


def _object(schemas: Schemas, schema: dict[str, Any], random: Random, depth: int) -> Any:
    properties = schema.get("properties")
    if not properties:
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth <= _MOST_DEPTH:
            keys = random.sample(("a", "b", "A", "", "a/b", "-", "x.y/z"), random.choice((0, 1, 2)))
            return {key: value_of(schemas, more, random, depth + 1) for key in keys}
        return {}
    if depth > _MOST_DEPTH:
        return {}
    names = [name for name in schema.get("required", []) if name in properties and random.random() < 0.95]
    others = [name for name in properties if name not in names]
    names += random.sample(others, min(len(others), random.choice((0, 1, 1, 2))))
    return {name: value_of(schemas, properties[name], random, depth + 1) for name in names}


def wrong_type(value: Any, random: Random) -> Any:
    """Return something of another JSON type."""
    choices: tuple[Any, ...] = ("x", 7, True, [], {}, ["x"], {"x": "y"}, 1.5)
    return random.choice([each for each in choices if type(each) is not type(value)])


def changed(schemas: Schemas, schema: dict[str, Any], obj: Any, random: Random, times: int = 1) -> Any:
    """Return a copy of `obj` with so many changes: a field set, added, removed, of a wrong type, unknown, or null."""
    out = copy.deepcopy(obj)
    for _ in range(times):
        _change(schemas, schema, out, random)
    return out


def _change(schemas: Schemas, schema: dict[str, Any], obj: Any, random: Random, depth: int = 0) -> None:
    """One change somewhere in `obj`, which is an object or a list of the schema; deeper ones as likely as near ones."""
    schema = schemas.resolved(schema)
    if isinstance(obj, list):
        items = schema.get("items", {})
        inner = [each for each in obj if isinstance(each, dict | list)]
        if inner and random.random() < 0.8:
            _change(schemas, items, random.choice(inner), random, depth + 1)
        elif obj and random.random() < 0.5:
            obj.append(copy.deepcopy(random.choice(obj))) if random.random() < 0.6 else obj.pop()
        else:
            obj.append(value_of(schemas, items, random, depth + 1))
        return
    if not isinstance(obj, dict):
        return
    properties = schema.get("properties") or {}
    deeper = [key for key, value in obj.items() if isinstance(value, dict | list) and key not in ("status",)]
    if depth == 0 and "spec" in deeper and random.random() < 0.75:
        deeper = ["spec"]
    if deeper and random.random() < (0.85 if depth == 0 else 0.65):
        key = random.choice(deeper)
        more = schema.get("additionalProperties")
        _change(schemas, properties.get(key) or (more if isinstance(more, dict) else {}), obj[key], random, depth + 1)
        return
    dice = random.random()
    known = [key for key in properties if depth or key not in ("apiVersion", "kind", "metadata", "status")]
    if dice < 0.05:
        obj[random.choice(("unknown", "Name", "x"))] = random.choice(("x", 1, {}, None))
    elif dice < 0.2 and obj:
        keys = [key for key in obj if depth or key not in ("apiVersion", "kind")]
        if keys:
            del obj[random.choice(keys)]
    elif dice < 0.28 and known:
        key = random.choice(known)
        obj[key] = wrong_type(obj.get(key, ""), random)
    elif dice < 0.33 and known:
        obj[random.choice(known)] = None
    elif known:
        key = random.choice(known)
        obj[key] = value_of(schemas, properties[key], random, depth + 1)
    elif isinstance(schema.get("additionalProperties"), dict):
        obj[random.choice(("a", "b", "A_", "x.y/z", "", "-"))] = value_of(
            schemas, schema["additionalProperties"], random, depth + 1
        )
