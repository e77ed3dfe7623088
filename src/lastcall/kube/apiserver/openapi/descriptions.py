"""What `kubectl explain` says of the metadata that all objects have: in our words, and of no other built-in type."""

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    "meta.v1.ObjectMeta": {
        "": "ObjectMeta is what every object has beside its kind: its name, and what the server keeps about it.",
        "annotations": "Annotations are texts that tools keep with the object. No selector asks for them.",
        "creationTimestamp": (
            "CreationTimestamp is a timestamp: when the server made the object (RFC 3339, UTC). The server sets it."
        ),
        "deletionGracePeriodSeconds": (
            "DeletionGracePeriodSeconds says how many seconds the object may take to end after its deletion "
            "was asked for. It may only become shorter. The server sets it."
        ),
        "deletionTimestamp": (
            "DeletionTimestamp is a timestamp: when the object's grace period ends (RFC 3339, UTC). It is "
            "there from the DELETE on. The object stays until then, and until it has no finalizers."
        ),
        "finalizers": (
            "Finalizers name those who have something to do before the object may go. An object that is being "
            "deleted goes with the last of them; no new ones can be added then."
        ),
        "generateName": "GenerateName is the beginning of a name that the server completes when no name is given.",
        "generation": "Generation counts the changes of what is wanted of the object. The server sets it.",
        "labels": "Labels are keys with values by which selectors find the object.",
        "managedFields": (
            "ManagedFields says which manager has set which fields, and in which version. The server keeps it "
            "for server-side apply."
        ),
        "name": "Name is the object's own among those of its kind in its namespace. It cannot be changed.",
        "namespace": "Namespace is where the object is. It cannot be changed. Kinds of the whole cluster have none.",
        "ownerReferences": (
            "OwnerReferences are the objects that this one depends on: when all of them are gone, the garbage "
            "collector deletes it. At most one of them is its controller."
        ),
        "resourceVersion": (
            "ResourceVersion is the state of the object as the server counts them. A write that names an old "
            "one is refused. Compare it for equality only, unless it is a number."
        ),
        "selfLink": "SelfLink is no longer set.",
        "uid": (
            "UID is the object's own for all time: one of the same name that is made later has another. The "
            "server sets it."
        ),
    },
    "meta.v1.ListMeta": {
        "": "ListMeta is what every list has beside its items.",
        "continue": "Continue is the token to ask for the next page with; there is one while the list goes on.",
        "remainingItemCount": "RemainingItemCount is how many items come after this page, where that is known.",
        "resourceVersion": (
            "ResourceVersion is the state that the list shows. A watch that begins with it misses nothing."
        ),
        "selfLink": "SelfLink is no longer set.",
    },
    "meta.v1.OwnerReference": {
        "": "OwnerReference names an object that this one depends on, in the same namespace or of the whole cluster.",
        "apiVersion": "APIVersion is the group and version of the owner.",
        "blockOwnerDeletion": (
            "BlockOwnerDeletion keeps an owner that is deleted in the foreground until this object is gone."
        ),
        "controller": "Controller says that the owner manages this object.",
        "kind": "Kind is that of the owner.",
        "name": "Name is that of the owner.",
        "uid": "UID is that of the owner.",
    },
    "meta.v1.ManagedFieldsEntry": {
        "": "ManagedFieldsEntry says which fields one manager has set by one kind of write.",
        "apiVersion": "APIVersion is the version in which the fields are named.",
        "fieldsType": "FieldsType is how the fields are written: FieldsV1.",
        "fieldsV1": "FieldsV1 are the fields, as a tree.",
        "manager": "Manager is who has set them.",
        "operation": "Operation is how they were set: Apply or Update.",
        "subresource": "Subresource is by which subresource they were set.",
        "time": "Time is a timestamp: when the fields of this entry changed last.",
    },
}
"""Type → field → description; "" is the type itself."""
