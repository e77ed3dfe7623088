"""Causes about how a container ended: its hook, its kill, its exit, its connections, its neighbours."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

CONTAINERS: Mapping[str, Cause] = {
    "neverStarted": Cause(
        title="A container was never started.",
        texts={
            "": "$container was never started, so nothing had to be stopped.",
            "because": "$container was never started ($because), so nothing had to be stopped.",
            "yet": "$container has not been started yet.",
            "yetBecause": "$container has not been started yet ($because).",
        },
    ),
    "endedByItself": Cause(
        title="A container had ended by itself before it was told to stop.",
        texts={
            "beforeDelete": "$container ended by itself $before before the DELETE, $exit.",
            "": "$container ended by itself at $at, before any signal was sent to it, $exit.",
            "hookWaited": "Its preStop hook was still waited for until $until.",
        },
    ),
    "sidecarHookEndsIt": Cause(
        title="A native sidecar ended with its preStop hook, before the containers that it is for.",
        remedy="Leave the hook out, or let it only wait: SIGTERM comes to a native sidecar after the containers.",
        texts={
            "": "$container ended at $at, with its preStop hook and before its stop signal, while $names still ran: "
            "the preStop hooks of all containers run at once, and only the stop signal waits for its turn.",
        },
        fixes={
            "": "Leave the preStop hook of $container out, or let it only wait: $container gets $signal when the "
            "containers have ended.",
        },
        lint=("sidecarHookEndsIt",),
    ),
    "hookNotRun": Cause(
        title="A preStop hook was not run.",
        remedy="If the container had ended by itself: do what the hook does at the end of the program, too.",
        texts={"": "The preStop hook of $container was not run: $detail."},
        fixes={
            "ended": "Do what the hook does at the end of the program itself: Kubernetes runs a preStop hook only "
            "before it stops a container that still runs.",
        },
    ),
    "hookDiedWithContainer": Cause(
        title="The container ended while its preStop command still ran in it.",
        remedy="If the hook itself ends the program with the stop signal: leave that to the kubelet.",
        texts={
            "": "$container ended while its preStop command ran, and the kernel killed the command with it. The "
            "kubelet reports that as a failed hook (Event FailedPreStopHook), but nothing is wrong with the hook.",
            "signals": "$container ended while its preStop command ran, and the kernel killed the command with it. The "
            "command itself tells PID 1 to end (`$command`), so what comes after that runs only until PID 1 has ended "
            "(inferred). The kubelet reports it as a failed hook (Event FailedPreStopHook).",
            "otherSignal": "$container ended while its preStop command ran, and the kernel killed the command with it. "
            "The command itself tells PID 1 to end (`$command`), in another way than $signal, which the kubelet sends; "
            "what comes after that runs only until PID 1 has ended (inferred). The kubelet reports it as a failed hook "
            "(Event FailedPreStopHook), but nothing is wrong with the hook.",
            "pause": "$container ended while its preStop command ran, and the kernel killed the command with it. The "
            "command itself tells PID 1 to end (`$command`), which is the Pod's pause process here (inferred). The "
            "kubelet reports it as a failed hook (Event FailedPreStopHook).",
        },
        fixes={
            "signals": "Leave the stop to the kubelet, which sends $signal when the hook has ended: the hook itself "
            "only does what has to come before it.",
        },
    ),
    "postStartHeld": Cause(
        title="A deletion waited for a postStart hook.",
        remedy="Give the hook a time limit.",
        texts={
            "": "The DELETE waited $waited for the postStart hook of $container, which had begun $before before it "
            "($detail): the kubelet stops a container only when its hook has ended.",
        },
        fixes={"": "Give the postStart hook a time limit (exec: timeout 30 COMMAND)."},
        lint=("postStartWaits",),
    ),
    "hookFailed": Cause(
        title="A preStop hook fails: the stop goes on without it, and no status shows it.",
        remedy="Correct the hook's command. To wait, use the sleep handler, which needs no program in the image.",
        texts={
            "": "The preStop hook of $container failed after $seconds: the stop goes on without it, and only the "
            "Event FailedPreStopHook shows it, not the Pod's status.",
            "because": "The preStop hook of $container failed after $seconds ($because): the stop goes on without it, "
            "and only the Event FailedPreStopHook shows it, not the Pod's status.",
            "said": "It said: $line",
        },
        fixes={
            "sleep": "lifecycle: {preStop: {sleep: {seconds: $seconds}}} (the kubelet waits: no program of the image "
            "is needed; Kubernetes 1.30 on)",
            "node": "Leave host out of the preStop hook: the kubelet asks from the node, where $host is the node "
            "itself. Without host it asks the Pod.",
            "otherPort": "port: $others in the httpGet of the preStop hook, because nothing listened on $port. A sleep "
            "in the hook's place needs no port.",
            "ports": "Correct the port in the httpGet of the preStop hook: nothing listened on $port; what listened: "
            "$others. A sleep in the hook's place needs no port.",
            "loopback": "$container listened on port $port only at $address, and the kubelet asks at the Pod's "
            "address: let it listen on all addresses (0.0.0.0 or ::).",
            "notFound": "Put the program into the image, or correct its path: it is not there.",
            "notExecutable": "Make the file executable (`chmod +x` in the image), or call it by its interpreter.",
            "": "Run the hook's command in the container (`kubectl exec`) to see why it fails, and correct it.",
        },
        lint=("hookCommandMissing", "hookPortUnresolved", "hookPortUndeclared", "hookTcpSocket", "asksNode"),
    ),
    "hookSignalRefused": Cause(
        title="The kernel refuses the signal of a preStop hook, because the process has another user.",
        remedy="Leave the signal to the runtime (STOPSIGNAL in the image): it may signal every process.",
        texts={
            "": "The kernel refused the signal that the preStop hook of $container sent (`$line`): a process may "
            "signal those of its own user only, without the capability KILL.",
            "other": "The kernel refused the signal that the preStop hook of $container sent (`$line`): PID 1 runs as "
            "user $user, and the hook as another, without the capability KILL.",
            "users": "The kernel refused the signal that the preStop hook of $container sent (`$line`): PID 1 runs as "
            "user $user, and the hook as user $own, with which the container started.",
            "root": "The kernel refused the signal that the preStop hook of $container sent (`$line`): PID 1 runs as "
            "user $user, and the hook as user 0, with which the container started, without the capability KILL.",
            "pause": "The kernel refused the signal that the preStop hook of $container sent (`$line`): PID 1 is the "
            "Pod's pause process (shareProcessNamespace), which runs as another user than the hook.",
            "failed": "The stop goes on without the hook, and only the Event FailedPreStopHook shows it, not the "
            "Pod's status.",
        },
        fixes={
            "same": "Leave the signal out of the hook: the runtime sends $signal when the hook has ended, and may "
            "signal every process.",
            "otherSignal": "Leave the signal out of the hook and let the runtime send it, which may signal every "
            "process: STOPSIGNAL $signal in the image, or in the Pod `os: {name: linux}` and `lifecycle: {stopSignal: "
            "$signal}` (feature gate ContainerStopSignals).",
            "keep": "To keep it in the hook: `securityContext: {runAsUser: $user}` for $container, so that both have "
            "the same user.",
            "keepRoot": "To keep it in the hook: `securityContext: {capabilities: {add: [KILL]}}` for $container.",
        },
        lint=("signalsPause",),
    ),
    "hookOutlived": Cause(
        title="A preStop hook takes longer than the grace period.",
        remedy="Shorten the preStop hook, or raise terminationGracePeriodSeconds above hook and drain together.",
        texts={
            "": "The preStop hook of $container still ran when the grace period was over ($seconds): $signal was sent "
            "while it ran.",
            "left": "The preStop hook of $container still ran when the grace period was over ($seconds): $signal was "
            "sent while it ran, and $container was left $left s.",
            "floor": "The preStop hook of $container still ran when the grace period was over ($seconds): $signal was "
            "sent while it ran, and $container was left $left s (the least that is given).",
        },
        fixes={
            "": "Shorten the preStop hook, or set terminationGracePeriodSeconds above $grace: it has to cover the "
            "hook and "
            "the time that the program takes to end.",
            "answer": "The kubelet waits for the answer to an httpGet hook without a time limit. If the page answers "
            "slowly, set terminationGracePeriodSeconds above $grace: it has to cover the answer and the time that the "
            "program takes to end. If the page never answers, such as because it waits for what happens only on "
            "$signal, no grace period is enough: let it answer without that.",
            "loop": "See what the loop of the hook waits for: $signal comes when the hook has ended, so what happens "
            "only on $signal never happens in it, such as that the program closes its port. No grace period is enough "
            "for that: leave the loop out. If it waits for something else, give it a limit (`timeout $limit …`), and "
            "set terminationGracePeriodSeconds above that limit and what the program then takes to end, together.",
            "loopFits": "Give the loop of the hook a limit that leaves time to end (`timeout $limit …`, half of the "
            "grace period: the program took $drain), and see what it waits for: $signal comes when the hook has "
            "ended, so what happens only on $signal never happens in it, such as that the program closes its port. No "
            "grace period is enough for that.",
            "loopShort": "See what the loop of the hook waits for: $signal comes when the hook has ended, so what "
            "happens only on $signal never happens in it, such as that the program closes its port. No grace period is "
            "enough for that.",
            "sleep": "terminationGracePeriodSeconds: $wanted, or a shorter sleep: the grace period has to cover the "
            "hook and the time that the program takes to end.",
        },
        lint=("hookOutlivesGrace", "hookLoops"),
    ),
    "killed": Cause(
        title="The container still ran when its grace period was over, and was killed (exit code 137).",
        remedy="End faster, or raise terminationGracePeriodSeconds.",
        texts={
            "timeOver": "$container was sent SIGKILL$when: its time was over.",
            "stillRan": "$container was sent SIGKILL$when, because it still ran $timeout s after $signal.",
            "hookTookTime": "$container was sent SIGKILL$when, because it still ran $timeout s after $signal (the "
            "preStop hook had taken $hook of the grace period before).",
            "other": "$container was sent SIGKILL$when ($why).",
            "inTurn": "Of the children of $parent that have handlers for $signal, $ended, and $names still ran. "
            "Whether it stops them one after another was not observed.",
            "endedAfter": "$who ended after $after",
        },
        fixes={
            "inTurn": "If $parent stops them one after another, as supervisord does with its groups, their times add "
            "up: with $each for each that still ran, $needed in all. Set terminationGracePeriodSeconds above $grace, "
            "or let it stop them at once (supervisord: all programs in one [group:x]). If it signals all at once, "
            "$names need more than $seconds.",
            "": "Set terminationGracePeriodSeconds above $grace, or end faster. That it needs more than $seconds after "
            "$signal is all that was seen: `lastcall run --grace $wanted` shows how much.",
            "hookTookTime": "Set terminationGracePeriodSeconds above $grace, or shorten the preStop hook. That the "
            "program needs more than $seconds after $signal is all that was seen: `lastcall run --grace $wanted` shows "
            "how much.",
            "hookTookTimeOfSleep": "Set terminationGracePeriodSeconds above $grace, or shorten the preStop hook: when "
            "SIGKILL came, the program would have slept $left more. That is enough only if no other sleep follows.",
            "wentOn": "After $signal it began $names, and did not end. If that is its drain, set "
            "terminationGracePeriodSeconds above $grace. If not, let what handles $signal exit (in a shell: `exit` in "
            "the trap).",
            "hookFailed": "Correct the preStop hook first, which failed: the program may wait for what it was to do.",
            "hookRefused": "Correct the preStop hook first: its signal was refused, and the program may need that one.",
            "streams": "All requests that ended with it were streams or WebSockets that it still held: let it end them "
            "on $signal, and limit the time of its shutdown (uvicorn: --timeout-graceful-shutdown). A longer grace "
            "period helps only if they end by themselves.",
            "connections": "If it still finished requests, set terminationGracePeriodSeconds above $grace. If it "
            "waited for connections that stay open, no time is enough: close them on $signal.",
            "sleeps": "Look at what the program sleeps for after $signal: when SIGKILL came it would have slept $left "
            "more. A longer grace period helps only if no other sleep follows.",
            "loops": "Look at what the program waits for after $signal: it went to sleep $count times and used $used, "
            "so it only looks whether something has come. A longer grace period helps only if that comes.",
            "threads": "After $signal the program used $used: it had threads that waited for others without a time "
            "limit, and $count that slept, for $left more at most ($calls). If it waits for the end of a thread that "
            "loops, no grace period is enough: end that loop on $signal, or do not wait for it (Python: daemon=True; "
            "Java: setDaemon(true)).",
            "endless": "Look at what the program waits for after $signal: it used $used, and waited without a time "
            "limit ($calls). Nothing shows that more time would help.",
            "idle": "Look at what the program waits for after $signal: it used $used, so it did not work ($calls). A "
            "longer grace period helps only if what it waits for ends by itself.",
            "stuck": "Look at what the program waits for after $signal: it still listened and did not accept "
            "$connections. Nothing shows that more time would help.",
        },
        lint=("hookEatsGrace", "drainLongerThanGrace", "stopSignalReloads"),
    ),
    "killedByOther": Cause(
        title="The container got a SIGKILL that the node did not send.",
        remedy="Find out what sends signals in the container or on the node: a supervisor, a script, `kubectl exec … "
        "kill`.",
        texts={
            "": "$container ended by SIGKILL$when, and lastcall did not send it: another process did, or the kernel "
            "because memory ran out (inferred).",
            "status": "$container ended with exit code 137$when, that of a SIGKILL, and the node had no reason to "
            "send one yet: another process did, memory ran out, or its PID 1 reports a killed child this way "
            "(inferred).",
        },
        fixes={
            "": "Find out what sends signals in the Pod or on the node: a supervisor, a script, `kill -9` by `kubectl "
            "exec`, another container with shareProcessNamespace.",
        },
    ),
    "pauseEnded": Cause(
        title="The Pod's pause process ended, and the kernel killed every container of the Pod.",
        remedy="Send signals to the program's own process, not to PID 1: with shareProcessNamespace, PID 1 is pause.",
        texts={
            "": "$container ended by SIGKILL$when, because the Pod's pause process ended: with shareProcessNamespace "
            "it is PID 1 of all containers, and the kernel kills every process of a namespace whose PID 1 ends. It "
            "exits on SIGINT and SIGTERM.",
            "inferred": "$container ended by SIGKILL$when, because the Pod's pause process ended (inferred: the node "
            "did not stop the sandbox, and it is no longer ready): with shareProcessNamespace it is PID 1 of all "
            "containers, and the kernel kills every process of a namespace whose PID 1 ends. It exits on SIGINT and "
            "SIGTERM.",
        },
        fixes={
            "": "Send the signal to the program's own process, not to PID 1: by `pkill NAME` or by its PID file. Or "
            "leave out shareProcessNamespace.",
        },
    ),
    "connectionsOpenAtKill": Cause(
        title="The program waited for open connections until it was killed.",
        remedy="Close idle keep-alive connections on the stop signal, and tell HTTP/2 clients to leave (GOAWAY). A "
        "longer grace period helps only where clients leave by themselves.",
        texts={
            "listening": "$container had $connections open when SIGKILL came, and still listened: it had not begun to "
            "end.",
            "": "$container had $connections open when SIGKILL came, and no longer listened: it probably waited for "
            "them (inferred).",
            "request": "sent on a connection that the stopping Pod kept open until it was killed, without telling its "
            "client to leave",
            "peers": "They led to: $peers.",
            "pod": "Pod $name ($address)",
            "itself": "its own Pod ($address)",
            "noPod": "$address (no Pod that is known: a node, or outside of the cluster)",
        },
        fixes={
            "": "Close idle keep-alive connections on the stop signal.",
            "grace": "Close idle keep-alive connections on the stop signal. If requests were still in progress, give "
            "more time: terminationGracePeriodSeconds above $grace.",
        },
    ),
    "sidecarHoldsConnection": Cause(
        title="The program waits for a connection of a native sidecar, which the kubelet stops only after it.",
        remedy="Close connections on the stop signal, or make the sidecar an ordinary container. A longer grace period "
        "does not help.",
        texts={
            "": "$container no longer listened after $signal, and waited $seconds for connections of $sidecar until it "
            "was killed (inferred). $sidecar is a native sidecar: the kubelet stops it when the containers have ended, "
            "or their time is over.",
            "ended": "$container no longer listened after $signal, and waited $seconds for connections of $sidecar "
            "until that was stopped (inferred). $sidecar is a native sidecar: the kubelet stops it when the containers "
            "have ended, or their time is over.",
        },
        fixes={
            "": "Let $container close its connections on $signal (an HTTP server answers with `Connection: close` "
            "then; PostgreSQL ends its sessions on SIGINT). Or put $sidecar under containers: it then gets its stop "
            "signal at the same time. No grace period is enough, because $sidecar lives as long.",
        },
    ),
    "outOfMemory": Cause(
        title="PID 1 of the container was killed because it used more memory than its limit (OOMKilled, 137).",
        remedy="Raise resources.limits.memory, or let the program use less (heap sizes, workers, caches).",
        texts={
            "": "$container was killed$when because it ran out of memory: it used more than$group ($seen)."
            "$together$who",
            "limit": " its memory limit of $limit",
            "limitRange": " its memory limit of $limit, set by a LimitRange",
            "noLimit": " the memory that its Pod or its node had",
            "limitAbove": " the memory that its Pod or its node had left, below its own limit of $limit",
            "limitOrAbove": " its own limit of $limit, or the memory that its Pod or its node had left",
            "counted": "by the counter of its control group",
            "inferred": "inferred from the machine's counter",
            "together": " The kernel ended all of its processes at once, as Kubernetes 1.28 and later request it on "
            "cgroup v2.",
            "others": " PID 1 itself had $peak at most: its other processes, or files in memory, took the rest.",
            "files": " Files in memory, which count as its memory, had $files of it.",
        },
        fixes={
            "": "resources: {limits: {memory: more than $limit}}, or a program that uses less. How much it needs is "
            "not known, because it was killed at the limit.",
            "limitRange": "resources: {limits: {memory: more than $limit}} in $container itself: it states no limit, "
            "so a LimitRange of its namespace set this one. Or a program that uses less. How much it needs is not "
            "known, because it was killed at the limit.",
            "files": "See what took it. Other processes: resources: {limits: {memory: more than $limit}}, or fewer of "
            "them. Files: those of an emptyDir with medium: Memory and of /dev/shm count against the limit. Other "
            "files count only on a machine that has no disk for them, which `lastcall doctor` reports, and never on a "
            "node.",
        },
        lint=("memoryVolumeFills",),
    ),
    "childOutOfMemory": Cause(
        title="A child of PID 1 was killed because memory ran out; the container itself went on (cgroup v1).",
        remedy="Raise resources.limits.memory, or run fewer and smaller children.",
        texts={
            "": "The kernel killed $count of $container because memory ran out$limit; PID 1 lived on, and its end by "
            "$end came after that.",
        },
        fixes={
            "": "resources: {limits: {memory: more than $limit}}, or a program that uses less. How much it needs is "
            "not known, because it was killed at the limit.",
            "files": "See what took it. Other processes: resources: {limits: {memory: more than $limit}}, or fewer of "
            "them. Files: those of an emptyDir with medium: Memory and of /dev/shm count against the limit. Other "
            "files count only on a machine that has no disk for them, which `lastcall doctor` reports, and never on a "
            "node.",
        },
    ),
    "exitCode137OfItsOwn": Cause(
        title="PID 1 exited with 137 by itself: it reports a child that was killed.",
        remedy="Find out what killed the child, and why.",
        texts={
            "": "$container exited with 137 by itself: its PID 1 was not killed; $reporter.$memory",
            "shell": "a shell reports a killed child this way",
            "program": "programs report a killed child this way",
            "memory": " The counter of its control group says that memory ran out.",
        },
    ),
    "listenerClosedBeforeEndpoint": Cause(
        title="The program closes its port before its Service endpoint is removed: new connections are refused.",
        remedy="Add a preStop sleep of a few seconds: the port stays open while proxies learn of the change.",
        texts={
            "": "$container $closed $at after the DELETE, and its Service endpoint $later: new connections in between "
            "are refused.",
            "never": "never did",
            "turned": "turned not ready $seconds later",
        },
        fixes={"": "lifecycle: {preStop: {sleep: {seconds: $seconds}}}$port"},
        lint=("noPauseBeforeStop", "hookStopsAtOnce"),
    ),
    "listenerClosedSoon": Cause(
        title="The program closes its port right after its endpoint is removed: other proxies learn of it later.",
        remedy="Add a preStop sleep of a few seconds: the port stays open while proxies learn of the change.",
        texts={
            "": "$container $closed $seconds after its Service endpoint turned not ready: in a real cluster proxies "
            "and clients learn of that later and still connect.",
        },
        fixes={"": "lifecycle: {preStop: {sleep: {seconds: $seconds}}}$port"},
        lint=("noPauseBeforeStop", "hookStopsAtOnce"),
    ),
    "hookClosesListener": Cause(
        title="The preStop hook makes the program stop listening while requests are still sent to it.",
        remedy="Let the hook wait first (sleep), and only then tell the program to quit.",
        texts={
            "": "$container closed its port $port while its preStop hook ran, $seconds after the DELETE: in a real "
            "cluster proxies and clients learn of the DELETE later and still connect.",
            "request": "sent to a Pod whose program had closed its port while its preStop hook ran",
        },
        fixes={
            "": "Let the hook wait $seconds s before it tells the program to quit: `sleep $seconds; …`.",
            "request": "The preStop hook makes $name stop listening at once. One that waits first, `$hook`$grace, "
            "would have saved $them: senders learned of the change up to $lag s after the DELETE$later.",
            "notShell": "The preStop hook makes $name stop listening at once. Let it wait $seconds s first$grace, in a "
            "shell that then does the same (`sleep $seconds; …`), or let the program wait so long when it is asked to "
            "quit: senders learned of the change up to $lag s after the DELETE$later.",
        },
        lint=("hookStopsAtOnce",),
    ),
    "backlogNeverAccepted": Cause(
        title="Connections that the kernel had accepted and the program never did: their clients get a reset.",
        remedy="Add a preStop sleep of a few seconds, and accept the connections in the backlog before you close the "
        "listener.",
        texts={
            "": "$connections to $container had been accepted by the kernel and never by the program when it ended: "
            "their clients get a reset.",
        },
        fixes={"": "lifecycle: {preStop: {sleep: {seconds: $seconds}}}$port"},
    ),
    "connectionsCut": Cause(
        title="Connections were cut when the program ended.",
        remedy="On the stop signal, finish open requests before you exit.",
        texts={
            "": "$parts (seen $before before).",
            "open": "$whose ended with $connections open",
            "reset": "$count ended by a reset",
            "unread": "$count had sent $bytes that were never read",
            "closedUnread": "$count had sent data that was never read",
        },
        fixes={"": "On the stop signal, finish open requests before you exit."},
    ),
    "hookTimeNotCounted": Cause(
        title="In this Kubernetes version the preStop hook's time is not taken off the grace period.",
        texts={
            "": "$why; $container had $total in place of $grace s.",
            "version": "Kubernetes $version does not take the preStop hook's time off the grace period (1.22 to 1.27; "
            "fixed in 1.28)",
        },
    ),
    "sidecarEndsFirst": Cause(
        title="A container ended before another one of its Pod that still needed it.",
        remedy="Make it a native sidecar: an init container with restartPolicy Always is stopped after the containers.",
        texts={
            "": "$container ended with $end, $before after $other had ended, which it still needed (inferred from what "
            "it printed: $line). All containers of a Pod get their stop signal at the same time.",
            "wentOn": "$container went on for $before after $other had ended, which it still needed (inferred from "
            "what it printed: $line). All containers of a Pod get their stop signal at the same time, and a preStop "
            "hook delays that of its own container alone.",
        },
        fixes={
            "hook": "Give $other the preStop hook of $container, too; or make it a native sidecar (under "
            "initContainers, with `restartPolicy: Always`): the kubelet stops it when the containers have ended.",
            "": "Make $other a native sidecar (under initContainers, with `restartPolicy: Always`): the kubelet stops "
            "it when the containers have ended.",
        },
        lint=("backendEndsFirst",),
    ),
    "jobCountsAsDone": Cause(
        title="A container of a Job exits with 0 on its stop signal: the Job counts its work as done.",
        remedy="Exit with another code, such as 143, if work is left.",
        texts={
            "": "$container exited with 0 on $signal: if something else than the Job ends this Pod (a drain, an "
            "eviction), the Job may count the work as done, and then does not do it again.",
        },
        fixes={
            "": "If work is left on $signal, exit with another code (143 is usual): the Job then starts another Pod.",
        },
        lint=("jobCountsAsDone",),
    ),
    "exitCodeNotZero": Cause(
        title="The container ended on its stop signal with another exit code than 0 (143 is SIGTERM): no kill, but the "
        "Pod counts as Failed.",
        remedy="Handle the stop signal and exit with 0. 143 alone is not an error: nothing was killed.",
        texts={
            "": "$container ended with $how on $signal: the Pod counts as Failed, although nothing was killed.",
            "reported": "$container ended with $how on $signal, so the Pod counts as Failed. Before that it printed: "
            "$line",
            "uncaught": "$container ended with $how on $signal, because of an exception that it did not catch, so the "
            "Pod counts as Failed: $line",
            "bySignal": "$container ended with $how, as a program without a handler of its own does: it needed no "
            "SIGKILL, and this is not a crash.",
            "either": "$container ended with exit code $code on $signal: the signal ended it, or it handled the "
            "signal and exited with this code. Nothing was killed, and this is not a crash.",
            "jvm": "$container ended with $how on $signal, as a JVM does when its shutdown hooks have run: nothing was "
            "killed, and this is not a crash. The Pod counts as Failed.",
            "job": "$container ended with $how on $signal: its work counts as not done, so a Job that goes on does it "
            "again (with 0 it would count as done).",
            "jobReported": "$container ended with $how on $signal: its work counts as not done, so a Job that goes on "
            "does it again. Before that it printed: $line",
            "jobUncaught": "$container ended with $how on $signal, because of an exception that it did not catch: its "
            "work counts as not done, so a Job that goes on does it again: $line",
            "sidecar": "$container ended with $how on $signal. It is a native sidecar: its exit code changes neither "
            "the phase of the Pod nor the success of a Job.",
        },
        fixes={
            "": "Handle $signal and exit with 0 when the work is done; do not take this code for a crash.",
            "reported": "See what it reports: its exit code may be right, and 0 would hide it.",
            "early": "To see how the work ends by itself, delete the Pod later: `lastcall run --after 30s`.",
            "uncaught": "Correct what raises the exception after $signal: what the program had still to do was not "
            "done.",
            "jvm": "Do not take this code for a crash. Where 0 is needed: Runtime.getRuntime().halt(0) at the end of "
            "the last shutdown hook.",
            "sidecar": "If something else counts exit codes, such as your monitoring: let $container handle $signal "
            "and exit with 0.",
        },
    ),
}
