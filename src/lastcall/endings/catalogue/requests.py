"""Causes of lost requests (`lastcall rollout`), and what would have saved them."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

REQUESTS: Mapping[str, Cause] = {
    "lateEndpoint": Cause(
        title="Requests are still sent to a Pod that has stopped listening: endpoint removal reaches senders late.",
        remedy="Add a preStop sleep longer than the lag: the Pod keeps serving until every sender has learned of the "
        "removal.",
        texts={"": "sent to a Pod that no longer listened: its endpoint's removal had not reached the sender yet"},
        fixes={
            "": "A preStop hook `$hook`$on$grace would have saved $them: senders learned of the change up to $lag s "
            "after the DELETE$later, and the Pod would have kept serving until then.",
            "hookElsewhere": "The preStop hook of $others does not keep $name waiting, which serves port $port and has "
            "none: it got its stop signal at once. ",
            "hookThere": "A preStop hook that first waits $seconds s$grace would keep the Pod serving until the rules "
            "have changed, up to $lag s after the DELETE$later; $why, so let that one wait before it does anything "
            "else.",
            "hookFailed": "The preStop hook of $name failed ($because), so it kept nothing waiting: correct it first. "
            "Then let it take at least $seconds s$grace, or put a sleep in its place: senders learned of the change up "
            "to $lag s after the DELETE$later.",
        },
        lint=("noPauseBeforeStop", "hookStopsAtOnce", "localTrafficCutAtStop"),
    ),
    "cutOff": Cause(
        title="Requests were in flight when the container exited on its stop signal without answering them.",
        remedy="On the stop signal, stop listening, answer what is in flight, and then exit.",
        texts={"": "in flight when the container exited on its stop signal without answering them"},
        fixes={
            "": "The application exits on SIGTERM without finishing what it has begun: let it stop listening, answer "
            "what is in flight, and then exit.",
            "hookFailed": "The preStop hook of $name failed ($because), and the application exits on SIGTERM without "
            "finishing what it has begun. Correct the hook first: it may be what was to drain it. If requests are "
            "still cut off, let the application stop listening, answer what is in flight, and then exit.",
            "left": "PID 1 of $container exited on its stop signal while $names still ran, and with PID 1 the kernel "
            'kills everything in its container. Let PID 1 wait for its program (in a shell: `trap \'kill "$$pid"; wait '
            '"$$pid"\' TERM`), or begin the program with `exec`, so that it is PID 1.',
            "shell": "PID 1 of $container is a shell with a trap, and the container ends when the shell does: let it "
            'wait for the end of its program (`trap \'kill "$$pid"; wait "$$pid"\' TERM`), or begin the program with '
            "`exec`. If it waits already, let the program answer what is in flight before it exits.",
            "http2": "No change of the manifest prevents that on an HTTP/2 connection: let the application "
            "send GOAWAY on SIGTERM (first with the highest stream id, a moment later with the last one that it "
            "took), answer the streams that it took, and close then.",
            "websocket": "A WebSocket outlives any hook: let the application close each with a close frame (1001, "
            "going away) on SIGTERM, when what it has read is answered; its client connects again, to another Pod.",
            "stream": "A stream outlives any hook: let the application end each with its last chunk on SIGTERM; its "
            "client asks again, another Pod.",
        },
    ),
    "neverRead": Cause(
        title="Connections waited in the kernel (accept queue) for a container that closed its port or exited.",
        remedy="Add a preStop sleep, and accept the connections in the backlog before you close the listener.",
        texts={"": "still waiting in the kernel (accept queue) when the container closed its port or exited"},
    ),
    "requestKilled": Cause(
        title="Requests were in flight when the container was killed: its grace period was too short for them.",
        remedy="Raise terminationGracePeriodSeconds above the hook and the longest answer together.",
        texts={"": "in flight when the container was killed because its grace period was over"},
        fixes={
            "": "terminationGracePeriodSeconds: $wanted would give the application time to finish; $grace was too "
            "short.",
            "unseen": "If the application ends on SIGTERM, terminationGracePeriodSeconds: $wanted would give it time "
            "to finish; $grace was too short. What it does on SIGTERM was not observed.",
        },
        lint=("drainLongerThanGrace", "graceTooShort"),
    ),
    "staleConnection": Cause(
        title="A request was sent on a kept connection that the ending Pod closed at that moment.",
        remedy="Answer with `Connection: close` from the stop signal on, and close a connection after that, or when it "
        "has been idle for a second or two.",
        texts={"": "sent on a kept connection that the ending Pod closed at that moment"},
        fixes={
            "": "No change of the manifest prevents that: let the application answer `Connection: close` from SIGTERM "
            "on, and close a kept connection after such an answer, or when it has been idle for a second or two.",
        },
    ),
    "notListeningYet": Cause(
        title="Requests are sent to a Pod that counts as ready before it listens.",
        remedy="Add a readinessProbe that succeeds only when the program serves.",
        texts={"": "sent to a Pod that was marked Ready before it listened"},
        fixes={
            "": "A readinessProbe would keep requests away until the container listens.",
            "otherPort": "The readinessProbe of $name asks port $asked, and requests go to port $port: let it ask that "
            "one.",
            "otherProbe": "The readinessProbe of $name succeeded before port $port listened: let what it asks succeed "
            "only when the port does.",
            "samePort": "The readinessProbe of $name asks port $asked and had succeeded, and the port then refused "
            "requests: see what the container printed.",
        },
        lint=("noReadinessProbe",),
    ),
    "notServingYet": Cause(
        title="A Pod counts as ready before its application serves: it answers requests with errors until then.",
        remedy="Use a readinessProbe that asks the application (httpGet): a TCP connection works as soon as it "
        "listens.",
        texts={"": "answered with an error by a Pod that was marked Ready before its application served"},
        fixes={
            "": "A readinessProbe that asks the application (httpGet, path $path) would keep requests away until it "
            "serves.",
            "tcpSocket": "The readinessProbe of $name only opens a connection, which works as soon as the program "
            "listens. One that asks the application (httpGet, path $path) would keep requests away until it serves.",
            "httpGet": "The readinessProbe of $name asks for $asked, which succeeded while $path was answered with "
            "errors: ask for $path, or let $asked succeed only when the application serves.",
            "other": "The readinessProbe of $name ($handler) succeeded while the application answered with errors: let "
            "what it asks succeed only when the application serves.",
        },
        lint=("readinessOnlyConnects",),
    ),
    "unreadyPodsPublished": Cause(
        title="The Service sends to Pods that are not Ready: publishNotReadyAddresses.",
        remedy="Leave publishNotReadyAddresses out; Pods that look each other up have a headless Service of their own.",
        texts={"": "sent to a Pod that was not Ready yet: its Service publishes such addresses"},
        fixes={
            "": "Leave publishNotReadyAddresses out of the Service that clients use: Pods that look each other up "
            "before they are Ready have a headless Service of their own.",
        },
        lint=("unreadyPodsPublished",),
    ),
    "connectionLimitCuts": Cause(
        title="The server closed connections with requests under way, each after about as many requests or seconds.",
        remedy="Announce the end of a connection before it is closed: GOAWAY, or `Connection: close`.",
        texts={
            "": "cut off by a Pod that nothing ended: it closes each connection after about the same number of "
            "requests, or the same time",
        },
        fixes={
            "requests": "The server closes each connection after about $value requests, with others under way: let it "
            "announce that (HTTP/2: GOAWAY with the last stream that it took; HTTP/1.1: `Connection: close`), answer "
            "what it took, and close then.",
            "seconds": "The server closes each connection after about $value s, with requests under way: let it "
            "announce that (HTTP/2: GOAWAY with the last stream that it took; HTTP/1.1: `Connection: close`), answer "
            "what it took, and close then.",
        },
    ),
    "neverAnswered": Cause(
        title="No request of a kind is answered, before anything is disrupted.",
        remedy="Correct the Service's targetPort, or ask for what the application speaks (--load, --path).",
        texts={
            "": "none of $count $kind requests was answered ($how) in $seconds s before the disruption",
            "refused": "none of $count $kind requests was answered ($how) in $seconds s before the disruption: the "
            "Pods are Ready and nothing listens on their port $port",
        },
        fixes={
            "": "check that the application speaks that kind ($ask)",
            "refused": "correct targetPort of Service $service, or let the program listen on $port (on 0.0.0.0, not on "
            "127.0.0.1)",
            "declared": "correct targetPort of Service $service: the containers declare $declared; or let the program "
            "listen on $port (on 0.0.0.0, not on 127.0.0.1)",
        },
    ),
    "pathNotServed": Cause(
        title="The application answers every request of a kind with a client error (4xx): nothing of it is tested.",
        remedy="Name a path of your application: --path, --slow-path.",
        texts={"": "$path answered $statuses to all $count $kind requests"},
        fixes={"": "name a path of your application with $option"},
    ),
    "serviceSelectsStranger": Cause(
        title="A Service selects the Pods of another workload, too, which do not answer its requests.",
        remedy="Give the Service's selector a label that only the serving Pods have.",
        texts={
            "": "$share % of the requests were lost before anything was disrupted ($how): Service $service selects "
            "$others, too, and none of those answered",
        },
        fixes={
            "": "Give spec.selector of Service $service a label that only the Pods of $workload have.",
            "selector": "spec.selector of Service $service: {$selector}, which only the Pods of $workload have.",
        },
        lint=("serviceSelectsStranger",),
    ),
    "crashedUnderLoad": Cause(
        title="A container crashed while it served requests.",
        remedy="See its exit code and its last log lines: no change of the manifest is known to help.",
        texts={"": "lost when their container crashed: it ended before anything told it to stop"},
        fixes={
            "": "The container ended by itself, before anything told it to stop: its exit code and last log lines say "
            "why.",
        },
    ),
    "restartedUnderLoad": Cause(
        title="The node restarted a container that served requests, because a probe had failed.",
        remedy="Let the livenessProbe succeed under load: raise timeoutSeconds or failureThreshold.",
        texts={"": "lost when the node restarted their container, because its liveness or startup probe had failed"},
        fixes={
            "": "The liveness probe ended a container that served: see what it was answered (Event Unhealthy); under "
            "load a longer timeoutSeconds or a larger failureThreshold keeps it.",
        },
    ),
    "noEndpoint": Cause(
        title="The Service had no Pod to send requests to.",
        remedy="Set maxUnavailable: 0 with maxSurge: 1, or use more replicas: one Pod has to keep serving.",
        texts={"": "sent while the Service had no Pod that could serve them"},
        fixes={
            "": "maxUnavailable: 0 would keep the old Pods until the new ones are ready.",
            "oneAtATime": "The update ends the old Pod before the new one is ready. maxUnavailable: 0 with maxSurge: 1 "
            "would keep it until then, if two Pods may have $what at the same time.",
            "replicas": "More replicas would leave a Pod to serve.",
            "daemonSet": "A DaemonSet has one Pod on each node: more nodes would leave a Pod to serve.",
            "unready": "Pods that nothing ended were not ready meanwhile: their readiness probes failed. The load was "
            "too much for those that were left, or this machine was too busy: send less, or try again.",
        },
        lint=("updateTakesAllPods", "recreateLeavesGap", "serviceSelectsNothing", "targetPortUnresolved"),
    ),
    "connectionsPinned": Cause(
        title="All requests of an HTTP/2 (gRPC) client go to one Pod: a connection is balanced once, when opened.",
        remedy="Let the server close connections after so many requests or minutes, or balance requests in place of "
        "connections: in the client (headless Service), or in a proxy.",
        texts={
            "before": "before the disruption the $kind requests of $connections were spread unevenly over the Pods "
            "($got): a connection is balanced once, when it is opened, and stays with its Pod.",
            "after": "after the disruption the $kind requests of $connections were spread unevenly over the Pods "
            "($got): a connection is balanced once, when it is opened, and stays with its Pod.",
        },
        fixes={
            "": "let the server close connections after so many requests or minutes (nginx: keepalive_requests, gRPC: "
            "MAX_CONNECTION_AGE); or balance requests: in the client, over a headless Service (gRPC: dns:/// and "
            "round_robin), or in a proxy that speaks HTTP/2.",
        },
    ),
    "serverError": Cause(
        title="The application answered with an error.",
        remedy="See the application's log.",
        texts={
            "": "answered with an error",
            "always": "all of $count $kind requests were answered with an error in $seconds s before the disruption",
        },
        fixes={
            "": "The application answered with errors: see its log.",
            "ending": "The application answered with errors while it ended: see the log of $pods.",
            "draining": "The application answers $status from its stop signal on, while new requests still come: let "
            "it serve until it exits, and only the path of its readinessProbe fail.",
            "serving": "The application answered with errors, in Pods that nothing had ended: see the log of $pods.",
            "proxy": "The Pod's proxy answered them, because the application behind it had stopped listening. A "
            "preStop "
            "hook `$hook`$grace on $names keeps the application serving until no new requests come.",
        },
        lint=("backendEndsFirst",),
    ),
    "unexplained": Cause(
        title="Requests were lost, and no Pod's end explains it.",
        texts={
            "": "lost without a Pod's end that would explain it",
            "worker": "When they were lost, the Pods of $count of the requests reported the end of a worker: $line",
        },
    ),
    "notSeen": Cause(
        title="Requests were lost on a cluster that is seen only from outside.",
        texts={
            "": "lost, and why is not known: the API does not show it",
            "pods": "its Pods could not be followed",
            "clock": "whether it was before or after a Pod's end began is not known: clocks are aligned to ± $error",
            "pod": "it had a connection, and which Pod that led to is not known",
            "rules": "nodes may have had no Pod to send it to, or may still have sent it to one that had ended",
            "start": "a new Pod without a readiness probe of that port may not have listened yet",
            "signal": "the Pod was ending, and whether it had got its stop signal is not known",
            "restart": "a container ended and was started again at that time, and why is not known",
            "silence": "nothing answered its connect, as already before any Pod ended",
            "entrance": "it reached no Pod, and what answers at the URL is not known to be the Service itself",
            "over": "it led to no Pod that ran, after so many had been sent to others that nodes no longer knew the "
            "ended ones",
        },
    ),
}
"""Causes of single requests; `lastcall.traffic.account.CAUSE_IDS` says which is which."""
