"""Admission policies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go. The texts are those of a real 1.36.2
(tests/unit/kube/apiserver/policies/policies.json).
"""

import re
from collections.abc import Sequence

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.names import is_dns1035_label, is_dns1123_subdomain, is_path_segment_name, is_qualified_name
from lastcall.kube.api.validators.cluster.webhooks import condition_errors, one_of, rule_errors, validate_configuration
from lastcall.kube.api.validators.common import conditions, label_selector
from lastcall.kube.api.validators.expressions import Expressions, Scope, expression_error
from lastcall.kube.api.validators.kind_rules import KindRules

MOST_AUDIT_ANNOTATIONS = 20
LONGEST_AUDIT_EXPRESSION = 5 * 1024
"""Bytes."""
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations with an object that a policy may change."""
_PATCHES = {"ApplyConfiguration": ("applyConfiguration", "Object"), "JSONPatch": ("jsonPatch", "list(JSONPatch)")}
"""(field, type of the expression's result) by patchType."""
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
     "let", "loop", "package", "namespace", "return", "var", "void", "while")
)  # fmt: skip
_NOTHING = "validations or auditAnnotations must contain at least one item"


# -- policies ----------------------------------------------------------------------------------------------------------


def validate_validating_policy(obj: Object, expressions: Expressions) -> list[FieldError]:
    """Check a ValidatingAdmissionPolicy. (`ValidateValidatingAdmissionPolicy`)"""
    spec = obj.get("spec") or {}
    errors, scope = _policy(spec, expressions)
    composed = bool(spec.get("variables"))
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        return [*errors, required("spec.validations", _NOTHING), required("spec.auditAnnotations", _NOTHING)]
    for index, validation in enumerate(validations):
        errors += _validation(validation, f"spec.validations[{index}]", scope, composed=composed)
    return errors + _audit_annotations(annotations, name_of(obj), scope, composed=composed)


def validate_mutating_policy(obj: Object, expressions: Expressions) -> list[FieldError]:
    """Check a MutatingAdmissionPolicy. (`ValidateMutatingAdmissionPolicy`)"""
    spec = obj.get("spec") or {}
    errors, scope = _policy(spec, expressions, mutating=True)
    mutations = spec.get("mutations") or ()
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        errors += _mutation(mutation, f"spec.mutations[{index}]", scope, composed=bool(spec.get("variables")))
    if not spec.get("reinvocationPolicy"):
        errors.append(required("spec.reinvocationPolicy"))
    else:
        errors += one_of(spec, "reinvocationPolicy", "spec", ("IfNeeded", "Never"))
    return errors


def _policy(spec: Object, expressions: Expressions, *, mutating: bool = False) -> tuple[list[FieldError], Scope]:
    """Check what both kinds have. Return the errors, and the scope with the policy's variables."""
    errors = one_of(spec, "failurePolicy", "spec", ("Fail", "Ignore"))
    kind = spec.get("paramKind")
    if kind is not None:
        errors += _param_kind(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _match_resources(constraints, "spec.matchConstraints", mutating=mutating)
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    scope = expressions.scope(params=kind is not None)
    errors += condition_errors(spec.get("matchConditions") or (), "spec.matchConditions", scope)
    for index, variable in enumerate(spec.get("variables") or ()):
        errors += _variable(variable, f"spec.variables[{index}]", scope)
    return errors, scope


def _param_kind(kind: Object, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    version, where = kind.get("apiVersion") or "", f"{at}.apiVersion"
    if not version:
        errors.append(required(where))
    elif version.count("/") > 1:
        errors.append(invalid(where, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, only = version.rpartition("/")
        if group and (problems := is_dns1123_subdomain(group)):
            errors.append(invalid(where, group, ",".join(problems)))
        if not only:
            errors.append(invalid(where, version, "version must be specified"))
        elif problems := is_dns1035_label(only):
            errors.append(invalid(where, only, ",".join(problems)))
    name = kind.get("kind") or ""
    if not name:
        errors.append(required(f"{at}.kind"))
    elif problems := is_dns1035_label(name.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.append(invalid(f"{at}.kind", name, why))
    return errors


def _match_resources(wanted: Object, at: str, *, mutating: bool) -> list[FieldError]:
    errors = one_of(wanted, "matchPolicy", at, ("Equivalent", "Exact"))
    for selector in ("namespaceSelector", "objectSelector"):
        errors += label_selector(wanted.get(selector), f"{at}.{selector}")
    for rules in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(wanted.get(rules) or ()):
            where = f"{at}.{rules}[{index}]"
            names = rule.get("resourceNames") or ()
            for position, name in enumerate(names):
                errors += each(f"{where}.resourceNames[{position}]", name, is_path_segment_name(name))
                if name in names[:position]:
                    errors.append(duplicate(f"{where}.resourceNames[{position}]", name))
            errors += rule_errors(rule, where)
    return errors + _mutable_operations(wanted, f"{at}.resourceRules.operations") if mutating else errors


def _mutable_operations(constraints: Object, at: str) -> list[FieldError]:
    asked = [each_ for rule in constraints.get("resourceRules") or () for each_ in rule.get("operations") or ()]
    return [not_supported(at, operation, _MUTABLE) for operation in asked if operation not in _MUTABLE]


def _variable(variable: Object, at: str, scope: Scope) -> list[FieldError]:
    errors: list[FieldError] = []
    name, text = variable.get("name") or "", variable.get("expression") or ""
    if not name.strip():
        errors.append(required(f"{at}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        errors.append(invalid(f"{at}.name", name, "must be a valid CEL identifier"))
    if not text.strip():
        errors.append(required(f"{at}.expression", "expression is not specified"))
    elif problem := scope.variable(name, text):
        errors.append(expression_error(f"{at}.expression", text, problem))
    return errors


def _validation(validation: Object, at: str, scope: Scope, *, composed: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    text = validation.get("expression") or ""
    if not text.strip():
        errors.append(required(f"{at}.expression", "expression is not specified"))
    elif problem := scope.problem(text, ("bool",), variables=composed):
        errors.append(expression_error(f"{at}.expression", text, problem))
    text = validation.get("messageExpression") or ""
    if text and not text.strip():
        errors.append(invalid(f"{at}.messageExpression", text, "must be non-empty if specified"))
    elif text and (problem := scope.problem(text, ("string",), authorizer=False, variables=composed)):
        errors.append(expression_error(f"{at}.messageExpression", text, problem))
    message = validation.get("message") or ""
    if message and not message.strip():
        errors.append(invalid(f"{at}.message", message, "must be non-empty if specified"))
    elif re.search(r"[\n\r]", message.strip()):
        errors.append(invalid(f"{at}.message", message, "must not contain line breaks"))
    return errors + one_of(validation, "reason", at, _REASONS)


def _audit_annotations(annotations: Sequence[Object], name: str, scope: Scope, *, composed: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    at = "spec.auditAnnotations"
    if len(annotations) > MOST_AUDIT_ANNOTATIONS:
        shown = [
            {"Key": each_.get("key") or "", "ValueExpression": each_.get("valueExpression") or ""}
            for each_ in annotations
        ]
        errors.append(invalid(at, shown, f"must not have more than {MOST_AUDIT_ANNOTATIONS} auditAnnotations"))
    keys: set[str] = set()
    for index, annotation in enumerate(annotations):
        where, key = f"{at}[{index}]", annotation.get("key") or ""
        if name:
            errors += each(f"{where}.key", f"{name}/{key}", is_qualified_name(f"{name}/{key}"))
        else:
            errors.append(invalid(f"{where}.key", key, "requires metadata.name be non-empty"))
        text = annotation.get("valueExpression") or ""
        expression = text.strip()
        if not expression:
            errors.append(required(f"{where}.valueExpression", "valueExpression is not specified"))
        elif len(expression.encode()) > LONGEST_AUDIT_EXPRESSION:
            why = f"must not exceed {LONGEST_AUDIT_EXPRESSION} bytes in length"
            errors.append(required(f"{where}.valueExpression", why))
        elif problem := scope.problem(expression, ("string", "null_type"), variables=composed):
            errors.append(expression_error(f"{where}.valueExpression", text, problem))
        if key in keys:
            errors.append(duplicate(f"{where}.key", key))
        keys.add(key)
    return errors


def _mutation(mutation: Object, at: str, scope: Scope, *, composed: bool) -> list[FieldError]:
    type_ = mutation.get("patchType") or ""
    if not type_:
        return [required(f"{at}.patchType")]
    if type_ not in _PATCHES:
        return [not_supported(f"{at}.patchType", type_, sorted(_PATCHES))]
    errors: list[FieldError] = []
    key, result = _PATCHES[type_]
    patch = mutation.get(key)
    if patch is None:
        errors.append(required(f"{at}.{key}", f"must be specified when patchType is {type_}"))
    else:
        text = patch.get("expression") or ""
        if not text.strip():
            errors.append(required(f"{at}.{key}.expression"))
        elif problem := scope.problem(text, (result,), variables=composed, patch=True):
            errors.append(expression_error(f"{at}.{key}.expression", text, problem))
    for other, _ in _PATCHES.values():
        if other != key and mutation.get(other) is not None:
            why = f"must not be specified when patchType is {type_}"
            errors.append(invalid(f"{at}.{other}", f"{{{other}}}", why))
    return errors


# -- bindings ----------------------------------------------------------------------------------------------------------


def validate_mutating_binding(obj: Object) -> list[FieldError]:
    """Check a MutatingAdmissionPolicyBinding. (`ValidateMutatingAdmissionPolicyBinding`)"""
    return _binding(obj, mutating=True)


def _binding(obj: Object, *, mutating: bool) -> list[FieldError]:
    spec = obj.get("spec") or {}
    name = spec.get("policyName") or ""
    errors = each("spec.policyName", name, is_dns1123_subdomain(name)) if name else [required("spec.policyName")]
    errors += _param_ref(spec.get("paramRef"), "spec.paramRef")
    return errors + _match_resources(spec.get("matchResources") or {}, "spec.matchResources", mutating=mutating)


def validate_validating_binding(obj: Object) -> list[FieldError]:
    """Check a ValidatingAdmissionPolicyBinding. (`ValidateValidatingAdmissionPolicyBinding`)"""
    actions = (obj.get("spec") or {}).get("validationActions") or []
    return _binding(obj, mutating=False) + _actions(actions, "spec.validationActions")


def _param_ref(ref: Object | None, at: str) -> list[FieldError]:
    if ref is None:
        return []
    errors: list[FieldError] = []
    name, selector = ref.get("name") or "", ref.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        errors += each(f"{at}.name", name, is_path_segment_name(name))
        if selector is not None:
            errors.append(forbidden(f"{at}.name", both))
    if selector is not None:
        errors += label_selector(selector, f"{at}.selector")
        if name:
            errors.append(forbidden(f"{at}.selector", both))
    if not name and selector is None:
        errors.append(required(at, "one of name or selector must be specified"))
    if not ref.get("parameterNotFoundAction"):
        errors.append(required(f"{at}.parameterNotFoundAction"))
    else:
        errors += one_of(ref, "parameterNotFoundAction", at, _NOT_FOUND_ACTIONS)
    return errors


def _actions(actions: list[str], at: str) -> list[FieldError]:
    if not actions:
        return [required(at, "at least one validation action is required")]
    errors: list[FieldError] = []
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(f"{at}[{index}]", action, _ACTIONS))
        if action in actions[:index]:
            errors.append(duplicate(f"{at}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid(at, actions, why))
    return errors


def update_policy_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a ValidatingAdmissionPolicy's status. (`validateValidatingAdmissionPolicyStatus`)"""
    status = new.get("status") or {}
    errors: list[FieldError] = []
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        at = f"status.typeChecking.expressionWarnings[{index}]"
        if not warning.get("warning"):
            errors.append(required(f"{at}.warning"))
        if not (warning.get("fieldRef") or "").strip():
            errors.append(required(f"{at}.fieldRef"))
    return errors + conditions(status.get("conditions") or (), "status.conditions")


RULES: dict[str, KindRules] = {
    "mutatingwebhookconfigurations": KindRules(expressions=validate_configuration),
    "validatingwebhookconfigurations": KindRules(expressions=validate_configuration),
    "validatingadmissionpolicies": KindRules(
        expressions=validate_validating_policy, subresources=(("status", update_policy_status),)
    ),
    "validatingadmissionpolicybindings": KindRules(obj=validate_validating_binding),
    "mutatingadmissionpolicies": KindRules(expressions=validate_mutating_policy),
    "mutatingadmissionpolicybindings": KindRules(obj=validate_mutating_binding),
}
"""Of the group admissionregistration.k8s.io, by plural."""
