"""Lines of what the runtime and init do and see of processes, sockets and networks. Pure."""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastcall.records.said import joined, str_of, tell
from lastcall.records.signal_names import signal_name
from lastcall.records.text import seconds
from lastcall.records.wording.parts import DETAIL, NOISE, STEP, Facts, Style, Words, took

if TYPE_CHECKING:
    from lastcall.records.fields import init, runtime, witness


# -- signals and processes -----------------------------------------------------------------------------------------


def signal_state(facts: runtime.ProcessSignalState) -> Words:
    exe = f" ({facts['exe']})" if facts.get("exe") else ""
    number, signal = facts.get("containerPid", 1), signal_name(facts.get("signal"))
    disposition, taken = facts.get("disposition"), str(facts.get("taken"))
    if disposition == "handled":
        how = {
            "sigwait": tell("is waited for"),
            "signalfd": tell("is read from a signalfd"),
        }.get(taken) or tell("is handled")  # fmt: skip
    elif disposition == "ignored":
        how = tell("is ignored")
    elif disposition == "blocked":
        how = tell("is blocked")
    elif disposition != "default":
        how = tell("in an unknown state")
    else:
        deaf = number == 1
        how = tell("has no handler: PID 1 does not get it") if deaf else tell("has no handler: it ends the process")
        text = tell("PID $number$exe: $signal $how", number=number, exe=exe, signal=signal, how=how)
        return Words(text, STEP, "bad" if deaf else "")
    style: Style = "" if disposition == "handled" else "bad"
    return Words(tell("PID $number$exe: $signal $how", number=number, exe=exe, signal=signal, how=how), STEP, style)


def signal_sent(facts: runtime.SignalSent) -> Words:
    name, pid, why = signal_name(facts.get("signal")), facts.get("pid"), str_of(facts.get("why"))
    if why == "exec timeout":
        return Words(tell("$signal → exec, pid $pid (exec timeout)", signal=name, pid=pid), DETAIL, "signal")
    if why == "caller gone":
        return Words(tell("$signal → exec, pid $pid (caller gone)", signal=name, pid=pid), DETAIL, "signal")
    if why == "grace over":
        why = tell("grace over")
    elif why == "the shim died":
        why = tell("the shim died")
    style: Style = "bad" if name == "SIGKILL" else "signal"
    if pid:
        return Words(tell("$signal → pid $pid ($why)", signal=name, pid=pid, why=why), STEP, style)
    return Words(tell("$signal → its PID 1 ($why)", signal=name, why=why), STEP, style)


def process_exited(facts: runtime.ProcessExited) -> Words:
    name, code = signal_name(facts.get("signal")), facts.get("exitCode")
    if not name:
        return Words(tell("exit $code", code=code), STEP, "good" if code == 0 else "bad")
    style: Style = "bad" if name == "SIGKILL" else "signal"
    if facts.get("oomKilled"):
        return Words(tell("ended by $signal, out of memory, exit code $code", signal=name, code=code), STEP, style)
    return Words(tell("ended by $signal, exit code $code", signal=name, code=code), STEP, style)


def output(facts: runtime.Output) -> Words:
    return Words(tell("│ $text", text=str(facts.get("text") or "").rstrip("\n")), STEP, "output")


def process_died(facts: init.ProcessDied) -> Words:
    name = signal_name(facts.get("signal"))
    level = NOISE if facts.get("role") == "orphan" else STEP
    who = {"role": facts.get("role"), "pid": facts.get("pid")}
    if "hung" in facts:
        time = f"{facts['hung']['seconds']:.0f}"
        text = tell("$role (pid $pid) hung and was ended: its event loop did not turn for $time s", time=time, **who)
        return Words(text, level, "bad")
    if name:
        return Words(tell("$role (pid $pid) killed by $signal", signal=name, **who), level, "bad")
    return Words(tell("$role (pid $pid) exited with $code", code=facts.get("exitCode"), **who), level, "bad")


def processes_left(facts: witness.ProcessesLeft) -> Words:
    names: list[str] = [f"{each.get('name')} (pid {each.get('containerPid')})" for each in facts.get("processes") or ()]
    if facts.get("more"):
        names.append(tell("$count more", count=facts["more"]))
    zombies = facts.get("zombies")
    dead = tell("1 zombie") if zombies == 1 else tell("$count zombies", count=zombies) if zombies else ""
    when = facts.get("when")
    if not names:
        return Words(tell("at $when: $what", when=when, what=dead or tell("no other process")), DETAIL)
    who = joined([*names, dead], ", ")
    if when == "SIGKILL":
        return Words(tell("still alive: $who", who=who), STEP, "bad")
    return Words(tell("killed with PID 1: $who", who=who), STEP, "bad")


# -- networks and sockets ------------------------------------------------------------------------------------------


def network_policies_applied(facts: runtime.NetworkPoliciesApplied) -> Words:
    received, sent = ", ".join(facts.get("ingress") or ()), ", ".join(facts.get("egress") or ())
    text = joined(
        (
            tell("receives only what $policies allow", policies=received) if received else "",
            tell("sends only what $policies allow", policies=sent) if sent else "",
        ),
        "; ",
    )
    what = text or tell("receives and sends everything again")
    return Words(tell("NetworkPolicies: $what", what=what), STEP, "endpoint")


def network_detached(facts: runtime.NetworkDetached) -> Words:
    if facts.get("error"):
        return Words(tell("network teardown failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("network $ip torn down$time", ip=facts.get("ip"), time=took(facts)))


def _connections_open(count: Any) -> str:
    return tell("1 connection open") if count == 1 else tell("$count connections open", count=count or 0)


def _between(facts: Facts) -> str:
    late = seconds(facts.get("seconds"))
    if not facts.get("notBefore"):
        return tell("within $late of the stop signal", late=late)
    return tell("$early to $late after the stop signal", early=seconds(facts.get("notBefore")), late=late)


def sockets_at_stop(facts: witness.SocketsAtStop) -> Words:
    listeners = facts.get("listeners") or ()
    ports = ", ".join(f"{each.get('address')}:{each.get('port')}" for each in listeners)
    count = _connections_open(facts.get("connections"))
    has = tell("the Pod has $count", count=count) if facts.get("scope") == "pod" else count
    text = joined([tell("listens on $ports", ports=ports) if ports else "", has], "; ")
    waiting = sum(int(each.get("backlog") or 0) for each in listeners)
    return Words(joined([text, tell("$count not accepted", count=waiting)], ", ") if waiting else text)


def sockets_at_exit(facts: witness.SocketsAtExit) -> Words:
    parts = [tell("ended with $count", count=_connections_open(facts.get("connections")))]
    if facts.get("backlog"):
        parts.append(tell("$count never accepted", count=facts["backlog"]))
    if facts.get("unread"):
        count, amount = facts["unread"], facts.get("unreadBytes")
        parts.append(tell("$count with data not read ($bytes bytes)", count=count, bytes=amount))
    if facts.get("resets"):
        parts.append(tell("$count reset", count=facts["resets"]))
    lost = any(facts.get(key) for key in ("resets", "backlog", "unread"))
    level = STEP if lost or facts.get("connections") else DETAIL
    return Words(joined(parts, ", "), level, "bad" if lost else "")


def listener_closed(facts: witness.ListenerClosed) -> Words:
    return Words(tell("closed its port $port, $when", port=facts.get("port"), when=_between(facts)))


def connections_closed(facts: witness.ConnectionsClosed) -> Words:
    return Words(tell("its last connection is closed, $when", when=_between(facts)))
