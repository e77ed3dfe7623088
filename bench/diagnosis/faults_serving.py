"""Lists the faults under load: requests are lost."""

from random import Random

from bench.diagnosis.application import Application, container_of
from bench.diagnosis.fault import Fault
from bench.diagnosis.faults_start import ids
from bench.diagnosis.faults_stop import behaves, on_stop

LOADED = ("web",)


def slow(app: Application, load: str = "slow=12,fresh=10") -> None:
    app.args[app.args.index("--load") + 1] = load


def no_pause(app: Application, name: str, _: Random) -> None:
    container_of(app.spec, name).pop("lifecycle")


def leaves_at_once(app: Application, name: str, random: Random) -> None:
    app.programs[name].on_stop = "leave"
    no_pause(app, name, random)


def stops_accepting(app: Application, name: str, random: Random) -> None:
    """Leave the port open on the signal, and accept nothing more."""
    app.programs[name].on_stop = "deaf"
    no_pause(app, name, random)


def cuts_requests(app: Application, name: str, _: Random) -> None:
    """Leave on the signal without answering what is under way: long requests outlast the hook."""
    app.programs[name].finishes = False
    app.programs[name].slow_seconds = 3.0
    slow(app)


def no_readiness(app: Application, name: str, random: Random) -> None:
    """Listen a while after the Pod counts as Ready."""
    app.programs[name].start_seconds = random.choice((2.0, 3.0))
    container_of(app.spec, name).pop("readinessProbe")
    container_of(app.spec, name).pop("livenessProbe", None)


def warms_up(app: Application, name: str, random: Random) -> None:
    """Answer with errors at first; the probe asks for no more than a connection."""
    app.programs[name].warm_seconds = random.choice((2.0, 3.0))
    container = container_of(app.spec, name)
    container["readinessProbe"] = {"tcpSocket": {"port": "http"}, "periodSeconds": 1}
    container.pop("livenessProbe", None)


def grace_under_load(app: Application, name: str, _: Random) -> None:
    """Give long streams no end, and the Pod a grace period that they outlast."""
    app.programs[name].ends_streams = False
    app.spec["terminationGracePeriodSeconds"] = 3


def selects_nobody(app: Application, _: str, random: Random) -> tuple[str, ...]:
    app.service["spec"]["selector"] = {"app": f"{app.name}-{random.choice(('v2', 'web', 'prod'))}"}
    return ("selector",)


def target_port_name(app: Application, _: str, random: Random) -> tuple[str, ...]:
    name = random.choice(("web", "https", "main"))
    app.service["spec"]["ports"][0]["targetPort"] = name
    return (name,)


def one_replica(app: Application, _: str, __: Random) -> None:
    app.workload = {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
    app.args[app.args.index("--disrupt") + 1] = "rollout"
    app.program.start_seconds = 5.0  # longer than the old Pod goes on serving


def drops_kept(app: Application, name: str, _: Random) -> None:
    """Drop kept connections on the signal, with the requests that come on them."""
    app.programs[name].closes_idle = False
    slow(app, "fresh=10,keep-alive=80")


def hook_stops_first(app: Application, name: str, random: Random) -> None:
    """Let the hook stop the program and then wait: the pause comes when nobody listens any more."""
    script = f"kill -TERM 1; sleep {random.choice((2, 3))}"
    container_of(app.spec, name)["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", script]}}}


def hook_quits(app: Application, name: str, random: Random) -> None:
    """Let the hook ask the program to stop listening, and then wait: the pause comes when nobody listens any more."""
    program, path = app.programs[name], random.choice(("/quit", "/drain", "/shutdown"))
    program.quit_path = path
    ask = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{program.port}{path}')"
    script = f'python3 -c "{ask}"; sleep {random.choice((2, 3))}'
    container_of(app.spec, name)["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", script]}}}


def crashes_under_load(app: Application, name: str, random: Random) -> None:
    """Crash at a request, not at a time: one that comes while the other Pod is deleted, however slow the machine is."""
    app.programs[name].crash_at_request = random.randint(42, 55)


def calls_outlast_grace(app: Application, name: str, _: Random) -> None:
    """Answer what is under way, and take longer for it than the grace period is."""
    app.programs[name].slow_seconds = 3.0
    app.spec["terminationGracePeriodSeconds"] = 3


def pinned_channel(app: Application, name: str, _: Random) -> tuple[str, ...]:
    """End no connection, so that all requests of a client go to one Pod. No request is lost."""
    app.programs[name].most_requests = 0
    return ("close connections|connection age|max_connection_age|keepalive_requests",)


def waits_for_channels(app: Application, name: str, _: Random) -> None:
    """Say no GOAWAY, and wait for clients that have no reason to leave: requests come until the grace period is over.

    So no grace period is long enough, and `requestKilled`, which says that it was too short, is another cause.
    """
    app.programs[name].on_stop = "waitForClients"


def unready_published(app: Application, name: str, random: Random) -> tuple[str, ...]:
    app.service["spec"]["publishNotReadyAddresses"] = True
    app.programs[name].start_seconds = random.choice((2.0, 3.0))
    return ("publishNotReadyAddresses",)


LATE = ids("lateEndpoint", "listenerClosedBeforeEndpoint", "listenerClosedSoon")

GOAWAY = ("goaway",)
"""Without it a server of HTTP/2 that answers what is under way loses what its clients send next."""
ANSWERS = ("answer|finish",)
GOODBYES = ids("finishRequests", "endStreams", "closeIdleConnections")
"""Verbs for the end of an HTTP/2 connection: what is meant is in the words beside them."""
HTTP2 = (
    Fault("http2LeavesAtOnce", "serving", ("http2", "calls"), on_stop("leave"), ids("cutOff"), GOODBYES,
          ids("staleConnection"), needs=GOAWAY),
    Fault("goAwayAndLeaves", "serving", ("calls",), behaves(finishes=False), ids("cutOff"), GOODBYES,
          ids("staleConnection"), needs=ANSWERS),
    Fault("closesWithoutGoAway", "serving", ("http2",), behaves(closes_idle=False), ids("staleConnection"),
          GOODBYES, needs=GOAWAY),
    Fault("waitsForChannels", "serving", ("http2", "calls"), waits_for_channels, ids("connectionsOpenAtKill"),
          GOODBYES, needs=GOAWAY),
    Fault("pinnedChannel", "serving", ("channel",), pinned_channel, ids("connectionsPinned"),
          by_words="advice", shows=False),
    Fault("recyclesRudely", "serving", ("channel",), behaves(recycles_properly=False),
          ids("connectionLimitCuts"), GOODBYES, ids("unexplained"), needs=GOAWAY),
    Fault("callsOutlastGrace", "serving", ("calls",), calls_outlast_grace, ids("requestKilled"), ids("endStreams"),
          ids("killed")),
)  # fmt: skip
SERVING = (
    Fault("noPause", "serving", LOADED, no_pause, LATE, ids("keepListening"), ids("cutOff", "neverRead")),
    Fault("leavesAtOnce", "serving", LOADED, leaves_at_once, LATE, ids("keepListening"),
          ids("cutOff", "neverRead", "staleConnection")),
    Fault("cutsRequests", "serving", LOADED, cuts_requests, ids("cutOff"), ids("finishRequests"),
          ids("staleConnection")),
    Fault("cutsStreams", "serving", ("streams",), behaves(ends_streams=False, finishes=False), ids("cutOff"),
          ids("endStreams"), ids("staleConnection")),
    Fault("cutsWebSockets", "serving", ("websockets",), behaves(ends_streams=False, finishes=False), ids("cutOff"),
          ids("endStreams"), ids("staleConnection")),
    Fault("streamsKilled", "serving", ("streams",), grace_under_load, ids("requestKilled"), ids("endStreams"),
          ids("killed")),
    Fault("dropsIdle", "serving", LOADED, drops_kept, ids("staleConnection"),
          ids("closeIdleConnections")),
    Fault("neverAccepts", "serving", LOADED, stops_accepting, ids("neverRead", "backlogNeverAccepted"),
          ids("keepListening"), ids("cutOff", "lateEndpoint")),
    Fault("serverErrors", "serving", LOADED, behaves(errors=True), ids("serverError"), ids("fixServer"),
          ids("neverAnswered")),
    Fault("listensLate", "serving", LOADED, no_readiness, ids("notListeningYet"), ids("listenBeforeReady")),
    Fault("warmsUp", "serving", LOADED, warms_up, ids("notServingYet"), ids("listenBeforeReady", "startFaster"),
          ids("serverError")),
    Fault("unreadyPublished", "serving", LOADED, unready_published, ids("unreadyPodsPublished"), by_words="finding"),
    Fault("oneReplica", "serving", LOADED, one_replica, ids("noEndpoint")),
    Fault("selectsNobody", "serving", LOADED, selects_nobody, ids("noEndpoint", "neverAnswered"), by_words="finding",
          lint=ids("serviceSelectsNothing")),
    Fault("targetPortName", "serving", LOADED, target_port_name, ids("targetPortUnresolved"), by_words="finding"),
    Fault("hookStopsFirst", "serving", LOADED, hook_stops_first,
          LATE | ids("hookClosesListener"), ids("keepListening", "fixHook"),
          ids("cutOff", "neverRead", "staleConnection", "hookDiedWithContainer"), lint=ids("hookStopsAtOnce")),
    Fault("hookQuits", "serving", LOADED, hook_quits, ids("hookClosesListener"), ids("keepListening", "fixHook"),
          ids("cutOff", "neverRead", "staleConnection", "lateEndpoint")),
    Fault("crashesUnderLoad", "serving", LOADED, crashes_under_load, ids("crashedUnderLoad"), ids("fixCrash"),
          ids("crashed", "crashLoop", "lateEndpoint", "neverRead", "cutOff", "noEndpoint")),
    *HTTP2,
)  # fmt: skip
