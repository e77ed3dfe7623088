"""Every kind of record: a TypedDict whose name is the kind on the wire and whose fields are its facts. Types only.

A module holds the kinds of one writer, which its `ACTOR` names. Writers and readers import `lastcall.records.kinds`,
which `tools/make_catalogue.py` makes of this; nothing but that tool and tests imports these modules when it runs.
"""
