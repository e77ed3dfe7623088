"""Controllers of Pods that end: Job, CronJob. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import LabelSelector, ObjectMeta, ObjectReference
from lastcall.kube.api.types.pod import PodTemplateSpec
from lastcall.kube.api.types.scalars import Time


class Job(TypedDict, total=False):
    """io.k8s.api.batch.v1.Job"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: JobSpec
    status: JobStatus


class JobSpec(TypedDict, total=False):
    """io.k8s.api.batch.v1.JobSpec"""

    activeDeadlineSeconds: int
    backoffLimit: int
    backoffLimitPerIndex: int
    completionMode: Literal["Indexed", "NonIndexed"]
    completions: int
    managedBy: str
    manualSelector: bool
    maxFailedIndexes: int
    parallelism: int
    podFailurePolicy: PodFailurePolicy
    podReplacementPolicy: Literal["Failed", "TerminatingOrFailed"]
    selector: LabelSelector
    successPolicy: SuccessPolicy
    suspend: bool
    template: PodTemplateSpec
    ttlSecondsAfterFinished: int


class PodFailurePolicy(TypedDict, total=False):
    """io.k8s.api.batch.v1.PodFailurePolicy"""

    rules: list[PodFailurePolicyRule]


class PodFailurePolicyRule(TypedDict, total=False):
    """io.k8s.api.batch.v1.PodFailurePolicyRule"""

    action: Literal["Count", "FailIndex", "FailJob", "Ignore"]
    onExitCodes: PodFailurePolicyOnExitCodesRequirement
    onPodConditions: list[PodFailurePolicyOnPodConditionsPattern]


class PodFailurePolicyOnExitCodesRequirement(TypedDict, total=False):
    """io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement"""

    containerName: str
    operator: Literal["In", "NotIn"]
    values: list[int]


class PodFailurePolicyOnPodConditionsPattern(TypedDict, total=False):
    """io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern"""

    status: str
    type: str


class SuccessPolicy(TypedDict, total=False):
    """io.k8s.api.batch.v1.SuccessPolicy"""

    rules: list[SuccessPolicyRule]


class SuccessPolicyRule(TypedDict, total=False):
    """io.k8s.api.batch.v1.SuccessPolicyRule"""

    succeededCount: int
    succeededIndexes: str


class JobStatus(TypedDict, total=False):
    """io.k8s.api.batch.v1.JobStatus"""

    active: int
    completedIndexes: str
    completionTime: Time
    conditions: list[JobCondition]
    failed: int
    failedIndexes: str
    ready: int
    startTime: Time
    succeeded: int
    terminating: int
    uncountedTerminatedPods: UncountedTerminatedPods


class JobCondition(TypedDict, total=False):
    """io.k8s.api.batch.v1.JobCondition"""

    lastProbeTime: Time | None
    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class UncountedTerminatedPods(TypedDict, total=False):
    """io.k8s.api.batch.v1.UncountedTerminatedPods"""

    failed: list[str]
    succeeded: list[str]


class CronJob(TypedDict, total=False):
    """io.k8s.api.batch.v1.CronJob"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: CronJobSpec
    status: CronJobStatus


class CronJobSpec(TypedDict, total=False):
    """io.k8s.api.batch.v1.CronJobSpec"""

    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"]
    failedJobsHistoryLimit: int
    jobTemplate: JobTemplateSpec
    schedule: str
    startingDeadlineSeconds: int
    successfulJobsHistoryLimit: int
    suspend: bool
    timeZone: str


class JobTemplateSpec(TypedDict, total=False):
    """io.k8s.api.batch.v1.JobTemplateSpec"""

    metadata: ObjectMeta
    spec: JobSpec


class CronJobStatus(TypedDict, total=False):
    """io.k8s.api.batch.v1.CronJobStatus"""

    active: list[ObjectReference]
    lastScheduleTime: Time
    lastSuccessfulTime: Time
