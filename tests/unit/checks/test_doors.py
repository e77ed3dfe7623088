"""Rules about time, tasks, randomness, processes and libraries find what they are for."""

from checks.doors import doors, libraries, own_random, processes, shells

DOC = '"""Doc."""\n\n'


def test_time_tasks_and_identities_that_are_used_directly_are_found(find) -> None:
    code = (
        "import asyncio, time as t\nfrom uuid import uuid4\nfrom datetime import datetime\n"
        "asyncio.sleep(1)\nt.time()\ndatetime.now()\nt.strftime()\n"
    )
    assert find(doors, {"a.py": code, "world/clock.py": code}) == ["a.py:2", "a.py:4", "a.py:5", "a.py:6"]


def test_a_parameter_hides_the_module_of_its_name(find) -> None:
    assert find(doors, {"a.py": "import time\ndef f(time): return time.time()\n"}) == []


def test_an_exception_is_for_its_names_only_and_must_be_needed(find) -> None:
    allow = DOC + "# check: allow time.time because it is a test\n\nimport time\n\n"
    files = {"good.py": allow + "time.time()\n", "other.py": allow + "time.time()\ntime.sleep(1)\n", "idle.py": allow}
    assert find(doors, files) == ["idle.py:3", "other.py:8"]


def test_an_exception_in_the_world_is_not_needed(find) -> None:
    text = DOC + "# check: allow time.time because it is a test\n\nimport time\n\ntime.time()\n"
    assert find(doors, {"world/clock.py": text}) == ["world/clock.py:3"]


def test_the_generator_of_the_module_random_is_found(find) -> None:
    code = "import random\nfrom random import Random, choice\nrandom.choice([])\nrandom.Random(1)\n"
    assert find(own_random, {"a.py": code, "world/own.py": code}) == ["a.py:2", "a.py:3"]


def test_a_file_that_starts_a_process_needs_its_marker(find) -> None:
    marker = DOC + "# check: starts processes because it runs kubectl\n\n"
    files = {
        "a.py": "import os\nos.fork()\n",
        "b.py": "import subprocess\n",
        "c.py": "import os\nos.getpid()\n",
        "idle.py": marker,
        "marked.py": marker + "import subprocess\n\nsubprocess.run(['kubectl'])\n",
    }
    assert find(processes, files) == ["a.py:2", "b.py:1", "idle.py:3"]


def test_a_shell_is_found(find) -> None:
    files = {"a.py": "import subprocess\nsubprocess.run('x', shell=True)\n", "b.py": "import os\nos.system('x')\n"}
    assert find(shells, files) == ["a.py:2", "b.py:2"]


def test_a_heavy_library_needs_its_marker(find) -> None:
    marker = DOC + "# check: allow requests because it sends spans\n\n"
    files = {
        "a.py": "from google.protobuf import message\n",
        "b.py": "def f():\n    import opentelemetry.sdk\n",
        "idle.py": marker,
        "marked.py": marker + "import requests\n",
        "other.py": marker + "import requests\nimport prometheus_client\n",
    }
    assert find(libraries, files) == ["a.py:1", "b.py:2", "idle.py:3", "other.py:6"]
