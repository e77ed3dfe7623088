"""How the application ends."""

import urllib.request


def test_a_replica_ends_gracefully_and_loses_nothing(application):
    replica = application.pods("deployment/server")[0]
    ending = application.delete(replica, load="svc/server:80")
    ending.assert_graceful()
    assert ending.lost_requests == 0
    assert "the application ends" in ending.text or ending.exit_codes == {"server": 0}


def test_all_of_it_ends_gracefully(application):
    assert urllib.request.urlopen(application.url("svc/server:80")).read() == b"hello\n"
    ending = application.delete("deployment/server")
    assert ending.graceful, ending.text
    assert ending.seconds < 10, ending.text  # the hook's 2 s, and what is under way


def test_the_store_ends_gracefully(store):
    store.delete("deployment/store").assert_graceful()
