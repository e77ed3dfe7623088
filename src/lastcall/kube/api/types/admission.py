"""Policies of admission. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import Condition, LabelSelector, ObjectMeta


class ValidatingAdmissionPolicy(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: ValidatingAdmissionPolicySpec
    status: ValidatingAdmissionPolicyStatus


class ValidatingAdmissionPolicySpec(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec"""

    auditAnnotations: list[AuditAnnotation]
    failurePolicy: Literal["Fail", "Ignore"]
    matchConditions: list[MatchCondition]
    matchConstraints: MatchResources
    paramKind: ParamKind
    validations: list[Validation]
    variables: list[Variable]


class AuditAnnotation(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.AuditAnnotation"""

    key: str
    valueExpression: str


class MatchCondition(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.MatchCondition"""

    expression: str
    name: str


class MatchResources(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.MatchResources"""

    excludeResourceRules: list[NamedRuleWithOperations]
    matchPolicy: Literal["Equivalent", "Exact"]
    namespaceSelector: LabelSelector
    objectSelector: LabelSelector
    resourceRules: list[NamedRuleWithOperations]


class NamedRuleWithOperations(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.NamedRuleWithOperations"""

    apiGroups: list[str]
    apiVersions: list[str]
    operations: list[Literal["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]]
    resourceNames: list[str]
    resources: list[str]
    scope: Literal["*", "Cluster", "Namespaced"]


class ParamKind(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.ParamKind"""

    apiVersion: str
    kind: str


class Validation(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.Validation"""

    expression: str
    message: str
    messageExpression: str
    reason: str


class Variable(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.Variable"""

    expression: str
    name: str


class ValidatingAdmissionPolicyStatus(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyStatus"""

    conditions: list[Condition]
    observedGeneration: int
    typeChecking: TypeChecking


class TypeChecking(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.TypeChecking"""

    expressionWarnings: list[ExpressionWarning]


class ExpressionWarning(TypedDict, total=False):
    """io.k8s.api.admissionregistration.v1.ExpressionWarning"""

    fieldRef: str
    warning: str
