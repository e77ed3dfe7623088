"""What lastcall says, in Japanese: files of JSON by subject, English template → Japanese one with the same `$names`.

They are read by `lastcall.records.language`, when a reader asks for Japanese. A file more needs no other change.
"""
