"""Causes about what the processes of a container do with its stop signal."""

from collections.abc import Mapping

from lastcall.endings.catalogue.cause import Cause

SIGNALS: Mapping[str, Cause] = {
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
        lint=("shellKeepsSignal", "wrapperKeepsSignal", "trapLeavesJob"),
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
            "shell": "$main of $container$by_name has a shell below it, $shell, which does not pass $signal on to what "
            "it runs: $names $until. What they had begun was lost.",
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
            "shell": "Run the program itself as command of the container, without the shell between (npm and yarn run "
            "a script by `sh -c`); or begin the program with `exec` in the script, which does not help in a pipeline. "
            "`tini -g` does not help: it ends with its child, and all others with it.",
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
    "zombies": Cause(
        title="PID 1 does not reap children that ended (zombies).",
        remedy="Let PID 1 wait for its children; for those that it adopted: shareProcessNamespace: true, or an init "
        "such as tini as PID 1.",
        texts={
            "": "$main of $container$by_name has not reaped $count (zombies): each keeps a process number.",
        },
        fixes={
            "": "Let PID 1 wait for the children that it begins (`waitpid`). For those that it only adopted: "
            "shareProcessNamespace: true (the Pod's first process then adopts and reaps them), or an init such as tini "
            "as PID 1.",
        },
    ),
}
