"""TypedDicts of API objects, for the type checker only. Made by tools/make_types.py.

Import them below `if TYPE_CHECKING:`, so that no process pays for them
(rule `types` of tools/checks). All keys are optional, as they are in JSON:
`pod["spec"]` says that the key is there, `pod.get("status")` that it may be absent.
"""
