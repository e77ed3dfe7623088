// Made of docs/*.schema.json by tools/make_page_types.py.

/** pod.outcome of ending-v1. */
export type Outcome = "graceful" | "killed" | "crashed" | "restarted" | "hookFailed" | "unknown";

/** finding.severity of ending-v1. */
export type Severity = "info" | "warning" | "problem";

/** record.evidence of ending-v1. */
export type Evidence = "observed" | "inferred" | "predicted";

/** experiment.disrupt of rollout-v1. */
export type Disrupt = "rollout" | "scale-in" | "delete" | "drain" | "evict";

/** experiment.from of rollout-v1. */
export type Source = "node" | "pod" | "published" | "balancer" | "client";

/** experiment.verdict of rollout-v1. */
export type Verdict = "nothing lost" | "requests lost" | "inconclusive";

/** lost.kind of rollout-v1. */
export type Load = "fresh" | "keep-alive" | "slow" | "tcp" | "stream" | "websocket" | "http2";

/** lost.causeId of rollout-v1. */
export type CauseId = "lateEndpoint" | "hookClosesListener" | "cutOff" | "neverRead" | "requestKilled" | "connectionsOpenAtKill" | "staleConnection" | "notListeningYet" | "notServingYet" | "unreadyPodsPublished" | "crashedUnderLoad" | "restartedUnderLoad" | "connectionLimitCuts" | "noEndpoint" | "serverError" | "unexplained" | "notSeen";
