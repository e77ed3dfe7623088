#!/usr/bin/env python3
"""Passes on what the plugin before it gave. DEL fails while the file `fails` is beside it."""

import json
import os
import sys

here, verb, request = os.path.dirname(sys.argv[0]), os.environ["CNI_COMMAND"], json.load(sys.stdin)
if verb == "ADD":
    print(json.dumps(request["prevResult"]))
if verb == "DEL" and os.path.exists(f"{here}/fails"):
    print(json.dumps({"cniVersion": "1.0.0", "code": 101, "msg": "the switch is off"}))
    sys.exit(1)
