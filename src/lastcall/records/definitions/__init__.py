"""Every kind of record in one place: its facts, what it means, and its words.

A kind is a TypedDict whose name is the kind on the wire, whose fields are its facts and whose docstring says what it
means; the function below it puts a record of it into words. A module holds the kinds of one writer, which its `ACTOR`
names. Writers import `lastcall.records.kinds`, which `tools/make_catalogue.py` makes of this.
"""
