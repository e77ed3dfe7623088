"""`lastcall lint`: reads manifests, places findings in them, suppresses, edits."""
