"""Every pain on the kernel: `python tests/pains [--only NAME …] [--json FILE]`, or `make pains ONLY=name`.

Prints a line for each and n/n in the end. Exit status 0: every pain passed but those that are expected to fail (one
that passes all the same is told as MENDED: take its `known` away); 1 otherwise. `--docs` writes docs/pains.md, and
tries nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import documents
from light import load_lights, try_lights
from pain import load_all
from trial import MAKE_IMAGES, images_made, summary, told, try_pain


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/pains", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    if options.docs:
        documents.PATH.write_text(documents.text())
        return 0
    names = {name for word in options.only for name in word.split(",") if name}
    chosen = [each for each in load_all() if not names or {each.name, each.area, f"{each.area}/{each.name}"} & names]
    lights = [each for each in load_lights() if not names or {each.rule, each.name, "predicted"} & names]
    if not chosen and not lights:
        parser.error(f"no such pain: {', '.join(sorted(names))}")
    missing = {each.image for each in chosen if each.image} - set(images_made())
    if missing:
        subprocess.run([MAKE_IMAGES, *sorted(missing)], env={**os.environ, "PYTHON": sys.executable}, check=True)
    verdicts = []
    for verdict in chain(map(try_pain, chosen), try_lights(lights)):
        verdicts.append(verdict)
        print(told(verdict), flush=True)
        if verdict.word in ("FAIL", "known"):
            print("\n".join(f"    {line}" for why in verdict.why for line in why.splitlines()), flush=True)
    print(summary(verdicts), flush=True)
    if options.json:
        found = {"schema": "lastcall/pains/v1", "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        options.json.write_text(json.dumps(found | {"pains": [each.as_json() for each in verdicts]}, indent=1) + "\n")
    return 1 if any(each.word == "FAIL" for each in verdicts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
