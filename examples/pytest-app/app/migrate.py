"""The migration: brings the store to schema 2. Run twice it changes nothing the second time."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

if "STORE_SERVICE_HOST" not in os.environ:
    sys.exit("there is no Service named store in this namespace")
STORE = f"http://{os.environ['STORE_SERVICE_HOST']}:{os.environ['STORE_SERVICE_PORT']}"
PATIENCE_SECONDS = 60
SCHEMA = 2


def get(key, default):
    try:
        with urllib.request.urlopen(f"{STORE}/{key}", timeout=2) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return default
        raise


def put(key, value):
    request = urllib.request.Request(f"{STORE}/{key}", data=json.dumps(value).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=2).close()


end = time.monotonic() + PATIENCE_SECONDS
while True:
    try:
        schema = get("schema", 0)
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"the store at {STORE} does not answer: {error}")
        time.sleep(0.5)
if schema < SCHEMA:
    put("greeting", get("greeting", "hello"))
    put("schema", SCHEMA)
print(f"schema {schema} -> {SCHEMA}", flush=True)
