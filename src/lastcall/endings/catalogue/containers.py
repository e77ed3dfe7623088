"""Causes about how a container ended: its hook, its stop signal, its exit, its connections."""

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
        remedy="If the hook itself ends the program: leave the stop signal to the kubelet.",
        texts={
            "": "$container ended while its preStop command ran, and the kernel killed the command with it. The "
            "kubelet reports that as a failed hook (Event FailedPreStopHook), but nothing is wrong with the hook.",
            "signals": "$container ended while its preStop command ran, and the kernel killed the command with it. The "
            "command itself tells PID 1 to end (`$command`), so what comes after that runs only until PID 1 has ended "
            "(inferred). The kubelet reports it as a failed hook (Event FailedPreStopHook).",
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
            "notFound": "Put the program into the image, or correct its path: it is not there.",
            "notExecutable": "Make the file executable (`chmod +x` in the image), or call it by its interpreter.",
            "": "Run the hook's command in the container (`kubectl exec`) to see why it fails, and correct it.",
        },
        lint=("hookCommandMissing", "hookPortUnresolved", "hookTcpSocket", "asksNode"),
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
            "loop": "Give the loop of the hook a limit (`timeout 10 …`), and see what it waits for: $signal comes "
            "when the hook has ended, so what happens only on $signal never happens in it, such as that the program "
            "closes its port. No grace period is enough for that.",
            "sleep": "terminationGracePeriodSeconds: $wanted, or a shorter sleep: the grace period has to cover the "
            "hook and the time that the program takes to end.",
        },
        lint=("hookOutlivesGrace",),
    ),
    "stopSignalNotHandled": Cause(
        title="PID 1 of the container does nothing on the stop signal.",
        remedy="Install a handler for the stop signal, name the signal that the program handles, or run an init (tini, "
        "shareProcessNamespace: true) as PID 1.",
        texts={
            "": "$main of $container$program $disposition.",
            "untilKill": "$main of $container$program $disposition; it took the full time until SIGKILL, $seconds.",
            "untilMemory": "$main of $container$program $disposition; memory ran out $seconds later, and that ended "
            "it.",
            "untilOther": "$main of $container$program $disposition; SIGKILL ended it $seconds later.",
            "untilExit": "$main of $container$program $disposition; it ended by itself $seconds later, $exit.",
            "starting": "$main of $container$program had no handler for $signal yet, $age after its start, so the "
            "signal had no effect; it ended by itself $seconds later.",
            "default": "has no handler for $signal: the kernel drops a signal with its default action when PID 1 of a "
            "PID namespace gets it, so it did nothing",
            "ignored": "ignores $signal (SigIgn in /proc), so it did nothing",
            "blocked": "blocks $signal (SigBlk in /proc), so it was not delivered",
        },
        fixes={
            "ignored": "Stop ignoring $signal: install a handler that finishes what is in flight and exits (a shell "
            "that starts the program: `trap - TERM`).",
            "blocked": "Unblock $signal in the program, or in what starts it.",
            "otherSignal": "A handler for $signal, or shareProcessNamespace: true (it is not PID 1 then, and the "
            "signal ends it). It has a handler for $other: STOPSIGNAL $other in the image, or in the Pod `os: {name: "
            "linux}` and `lifecycle: {stopSignal: $other}` (feature gate ContainerStopSignals).",
            "default": "A handler for $signal, an init such as tini as PID 1, or shareProcessNamespace: true (it is "
            "not PID 1 then, and the signal ends it).",
        },
        lint=("stopSignalIgnored",),
    ),
    "shellKeepsSignal": Cause(
        title="PID 1 is a shell, and a shell does not pass the stop signal on to the program that it started.",
        remedy="Begin the script's last command with `exec`, so that the program takes the shell's place as PID 1. A "
        "shell that waits for a pipeline or for jobs in the background stays: run the program without them, or let the "
        "shell pass the signal on (`trap`).",
        texts={
            "": "$main of $container is a shell$by_name, and a shell does not pass $signal on: $names $until$untold.",
            "left": "$main of $container is a shell$by_name that has a trap for $signal, and it ended while $names "
            "still ran: $names $until. What they had begun was lost.",
            "trap": "$main of $container is a shell$by_name that has a trap for $signal: $names $until$untold.",
        },
        fixes={
            "trapOther": 'Let the trap send $signal to $name, which has no handler and ends on it: `kill "$$pid"`. '
            "What a script begins with `&` ignores SIGINT and SIGQUIT, unless it installs handlers for them.",
            "trap": 'See whether the trap passes $signal on (`kill "$$pid"`), and how long the program takes to end '
            "after that.",
            "command": "command: $command",
            "left": 'Let the trap pass the signal on and wait for the end of the program: `trap \'kill "$$pid"; wait '
            "\"$$pid\"' TERM`; or begin the script's last command with `exec`.",
            "last": "Begin the script's last command with `exec`, so that the program takes the shell's place as PID "
            "1.",
            "": "If the program is the last command of the script, begin that with `exec`, so that it takes the "
            "shell's place as PID 1. If it runs in the background, or commands come after it, let the shell pass the "
            "signal on and wait (`PROGRAM & pid=$$!; trap 'kill $$pid' TERM; wait $$pid; wait $$pid`).",
            "ignored": "$name ignores $signal, so this alone does not help: let it install a handler that finishes "
            "what is in flight and exits, too.",
            "blocked": "$name blocks $signal, so this alone does not help: let it unblock the signal, too.",
            "noHandler": "$name has no handler for $signal, and `exec` alone would make it a PID 1 that does not react "
            "either: give it a handler and begin it with `exec`. Or shareProcessNamespace: true: the signal then ends "
            "the shell, and the container with it.",
            "simplePipeline": "A shell waits for its pipeline, and `exec` within it changes nothing. Without it: "
            "command: $alone (the kubelet keeps what it prints: `kubectl logs`); or, in bash, command: $bash, which "
            "may lose the last lines of the file.",
            "pipeline": "A shell waits for its pipeline, and `exec` within it changes nothing. Let the program write "
            "to stdout alone and begin it with `exec` (the kubelet keeps what it prints: `kubectl logs`); or, in bash, "
            "`exec PROGRAM > >(tee FILE)`, which may lose the last lines of the file.",
            "jobs": "The shell stays because it has jobs in the background: let it pass the signal on, and wait for "
            "the end of the program (`PROGRAM & pid=$$!; trap 'kill $$pid' TERM; wait $$pid; wait $$pid`).",
            "before": "The shell has commands after $name: begin $name with `exec` and leave them out; or let the "
            "shell pass the signal on and wait, and run them then (`PROGRAM & pid=$$!; trap 'kill $$pid' TERM; "
            "wait $$pid; wait $$pid`).",
            "loop": "The shell itself is the program: let it end on the signal (`trap 'exit 0' TERM`), and begin what "
            "its loop waits for in the background (`sleep 5 & wait $$!`): a trap interrupts `wait`, and nothing else.",
            "several": "Its script runs several programs at once. Begin the one that needs the signal with `exec`, as "
            "the last command. A shell waits for a pipeline, though, `exec` or not: let the program write to stdout "
            "alone, or "
            "in bash `exec PROGRAM > >(tee FILE)`. For jobs in the background, let it pass the signal on (`trap 'kill "
            "$$pid' TERM; wait $$pid; wait $$pid`).",
        },
        lint=("shellKeepsSignal", "wrapperKeepsSignal"),
    ),
    "childrenNotSignalled": Cause(
        title="The stop signal goes to PID 1 alone, and its children are killed with it.",
        remedy="Let PID 1 pass the signal on to its children and wait for them, as `tini -g` does.",
        texts={
            "": "$signal goes to $main of $container$by_name alone: $names $until$untold. What they had begun was "
            "lost.",
            "handles": "$signal goes to $main of $container$by_name alone: $names has a handler for it, and $until. "
            "Whether PID 1 passed $signal on was not observed.",
            "handleIt": "$signal goes to $main of $container$by_name alone: $names have handlers for it, and $until. "
            "Whether PID 1 passed $signal on was not observed.",
            "child": "$main of $container$by_name passes $signal on to its child alone: $names $until, and never got "
            "it (inferred). What they had begun was lost.",
            "group": "$main of $container$by_name passes $signal on to the process group of its child alone: $names "
            "$until, and never got it (inferred). What they had begun was lost.",
        },
        fixes={
            "": "Let PID 1 pass the signal to its children and wait for them, as an init such as tini -g does.",
            "handles": "Let PID 1 pass the signal to its children and wait for them. If it does, raise the timeout "
            "after which it kills them (gunicorn: --graceful-timeout, supervisord: stopwaitsecs): "
            "terminationGracePeriodSeconds is not the limit.",
            "handlesAtKill": "Let PID 1 pass the signal to its children. If it does, they need longer than the grace "
            "period.",
            "child": "Let the init signal the whole process group (`tini -g`), or its child pass the signal on.",
            "group": "Keep the processes in the child's process group, or let the child pass the signal on.",
        },
    ),
    "signalEndsPool": Cause(
        title="An init passes the stop signal on to the whole process group, and ends processes whose parent handles "
        "it.",
        remedy="`dumb-init --single-child`, or tini without -g, if the parent is to let its children finish.",
        texts={
            "": "PID 1 of $container$by_name passes $signal on to the process group of its child: it ended $names, "
            "without a handler, $after after it was sent. $parent is their parent, and handles $signal.",
        },
        fixes={
            "": "If $parent is to let them finish what they have begun, only it may get the signal: `dumb-init "
            "--single-child`, or tini without -g.",
        },
    ),
    "childKilledInside": Cause(
        title="A process was killed from inside its container, before the grace period was over.",
        remedy="Raise the timeout of the program that ends its workers; the grace period is not the limit.",
        texts={
            "": "SIGKILL ended $names $after after $signal, while $main of $container$by_name lived. The "
            "kubelet did not send it: a process in the container did, as process managers do when their own timeout is "
            "over (inferred). What it had begun was lost.",
        },
        fixes={
            "": "Raise the timeout after which the process manager kills its workers (gunicorn: --graceful-timeout, "
            "supervisord: stopwaitsecs). terminationGracePeriodSeconds is not the limit.",
        },
    ),
    "childIgnoresSignal": Cause(
        title="The init passes the stop signal on, and the program that it started does nothing on it.",
        remedy="Install a handler for the stop signal in the program: an init only passes a signal on.",
        texts={
            "": "$main of $container$by_name passes $signal on, but $names $how; it took the full time until SIGKILL, "
            "$seconds.",
            "waits": "$main of $container$by_name handles $signal and waited for $names, which $how: passing the "
            "signal on does not help. It took the full time until SIGKILL, $seconds.",
            "ignored": "ignores $signal (SigIgn in /proc)",
            "blocked": "blocks $signal (SigBlk in /proc)",
        },
        fixes={
            "ignored": "Let $name stop ignoring $signal: install a handler that finishes what is in flight and exits "
            "(a shell that starts the program: `trap - TERM`).",
            "blocked": "Let $name unblock $signal.",
        },
    ),
    "shellRunsTrapLate": Cause(
        title="A shell runs its trap only when the command that it waits for has ended.",
        remedy="Run the command in the background and `wait` for it: a trap interrupts `wait`.",
        texts={
            "": "$container took $seconds to react to $signal: its PID 1 is a shell, and a shell runs its trap only "
            "when the command it waits for has ended.",
            "waits": "$main of $container is a shell$by_name that has a trap for $signal, and the trap had not run "
            "when SIGKILL came: a shell runs it only when the command that it waits for has ended, and $names still "
            "ran, which it had begun before $signal (inferred).",
        },
        fixes={
            "waits": "Run the command in the background, and let the trap pass the signal on: `PROGRAM & pid=$$!; trap "
            "'kill $$pid' TERM; wait $$pid; wait $$pid`. A trap interrupts `wait`, and nothing else.",
        },
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
        },
        fixes={
            "": "Set terminationGracePeriodSeconds above $grace, or end faster. That it needs more than $seconds after "
            "$signal is all that was seen: `lastcall run --grace $wanted` shows how much.",
            "hookTookTime": "Set terminationGracePeriodSeconds above $grace, or shorten the preStop hook. That the "
            "program needs more than $seconds after $signal is all that was seen: `lastcall run --grace $wanted` shows "
            "how much.",
            "wentOn": "After $signal it began $names, and did not end. If that is its drain, set "
            "terminationGracePeriodSeconds above $grace. If not, let what handles $signal exit (in a shell: `exit` in "
            "the trap).",
            "hookFailed": "Correct the preStop hook first, which failed: the program may wait for what it was to do.",
            "connections": "If it still finished requests, set terminationGracePeriodSeconds above $grace. If it "
            "waited for connections that stay open, no time is enough: close them on $signal.",
            "sleeps": "Look at what the program sleeps for after $signal: when SIGKILL came it would have slept $left "
            "more. A longer grace period helps only if no other sleep follows.",
            "loops": "Look at what the program waits for after $signal: it went to sleep $count times and used $used, "
            "so it only looks whether something has come. A longer grace period helps only if that comes.",
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
    "deadlocked": Cause(
        title="The program handles its stop signal, and its own threads wait for each other until it is killed.",
        remedy="Let the handler only set a flag or start a thread: what it calls must not wait for the code that it "
        "interrupts. A longer grace period does not help.",
        texts={
            "": "$container handles $signal, and when SIGKILL came all $count threads of its process$by_name waited "
            "for each other: for locks of their own memory, without a time limit (futex). It used $used. No thread was "
            "left that could go on.",
            "one": "$container handles $signal, and when SIGKILL came the only thread of its process$by_name waited "
            "for a lock of its own memory, without a time limit (futex). It used $used. No thread was left that could "
            "release it.",
        },
        fixes={
            "": "Let the handler of $signal not wait for the code that it interrupts: it sets a flag, or begins a "
            "thread that does the rest (Python: `threading.Thread(target=server.shutdown).start()`, because shutdown() "
            "waits for serve_forever(); Java: no System.exit() in a shutdown hook). A longer grace period does not "
            "help.",
        },
    ),
    "reloadsOnSignal": Cause(
        title="The program takes the stop signal for a reload: it starts new processes and does not end.",
        remedy="Tell it to end on SIGTERM (uWSGI: die-on-term), or name the signal that ends it as STOPSIGNAL.",
        texts={
            "": "$main of $container$by_name takes $signal for a reload: after it, $names started anew, and it still "
            "listened when it was killed.",
        },
        fixes={
            "uwsgi": "die-on-term = true in uWSGI's configuration (--die-on-term): SIGTERM then ends it.",
            "": "Tell the program to end on $signal, or name the signal that ends it: STOPSIGNAL in the image, or "
            "`lifecycle: {stopSignal: …}`.",
        },
        lint=("stopSignalReloads",),
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
    "outOfMemory": Cause(
        title="PID 1 of the container was killed because it used more memory than its limit (OOMKilled, 137).",
        remedy="Raise resources.limits.memory, or let the program use less (heap sizes, workers, caches).",
        texts={
            "": "$container was killed$when because it ran out of memory: it used more than$group ($seen)."
            "$together$who",
            "limit": " its memory limit of $limit",
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
            "files": "See what took it. Other processes: resources: {limits: {memory: more than $limit}}, or fewer of "
            "them. Files: those of an emptyDir with medium: Memory and of /dev/shm count against the limit. Other "
            "files count only on a machine that has no disk for them, which `lastcall doctor` reports, and never on a "
            "node.",
        },
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
    "zombies": Cause(
        title="PID 1 does not reap children that ended (zombies).",
        remedy="shareProcessNamespace: true, or an init such as tini as PID 1.",
        texts={
            "": "$main of $container$by_name has not reaped $count (zombies): each keeps a process number.",
        },
        fixes={
            "": "shareProcessNamespace: true (the Pod's first process then reaps them), or an init such as tini as "
            "PID 1.",
        },
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
    ),
    "jobCountsAsDone": Cause(
        title="A container of a Job exits with 0 on its stop signal: the Job counts its work as done.",
        remedy="Exit with another code, such as 143, if work is left.",
        texts={
            "": "$container exited with 0 on $signal: if something else than the Job ends this Pod (a drain, an "
            "eviction), the Job counts the work as done and does not do it again.",
        },
        fixes={
            "": "If work is left on $signal, exit with another code (143 is usual): the Job then starts another Pod.",
        },
    ),
    "exitCodeNotZero": Cause(
        title="The container ended on its stop signal with another exit code than 0 (143 is SIGTERM): no kill, but the "
        "Pod counts as Failed.",
        remedy="Handle the stop signal and exit with 0. 143 alone is not an error: nothing was killed.",
        texts={
            "": "$container ended with $how on $signal: the Pod counts as Failed, although nothing was killed.",
            "reported": "$container ended with $how on $signal, so the Pod counts as Failed. Before that it printed: "
            "$line",
            "bySignal": "$container ended with $how, as a program without a handler of its own does: it needed no "
            "SIGKILL, and this is not a crash.",
            "either": "$container ended with exit code $code on $signal: the signal ended it, or it handled the "
            "signal and exited with this code. Nothing was killed, and this is not a crash.",
            "jvm": "$container ended with $how on $signal, as a JVM does when its shutdown hooks have run: nothing was "
            "killed, and this is not a crash. The Pod counts as Failed.",
            "job": "$container ended with $how on $signal: its work counts as not done, so a Job that goes on does it "
            "again (with 0 it would count as done).",
        },
        fixes={
            "": "Handle $signal and exit with 0 when the work is done; do not take this code for a crash.",
            "reported": "See what it reports: its exit code may be right, and 0 would hide it.",
            "jvm": "Do not take this code for a crash. Where 0 is needed: Runtime.getRuntime().halt(0) at the end of "
            "the last shutdown hook.",
        },
    ),
}
