"""The rules of this folder, by group and plural."""

from lastcall.api.names import is_dns1123_subdomain
from lastcall.api.validators.cluster import addresses, certificates, csi, devices, flow_control
from lastcall.api.validators.kind_rules import KindRules

_STORAGE, _DEVICES, _FLOW = "storage.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io"

RULES: dict[tuple[str, str], KindRules] = {
    ("certificates.k8s.io", "certificatesigningrequests"): KindRules(
        certificates.any_name,
        create=certificates.validate,
        update=certificates.update,
        subresources=(("status", certificates.update_status), ("approval", certificates.update_approval)),
    ),
    ("networking.k8s.io", "ipaddresses"): KindRules(
        addresses.is_address_name, create=addresses.validate_address, update=addresses.update_address
    ),
    ("networking.k8s.io", "servicecidrs"): KindRules(
        create=addresses.validate_service_cidr, update=addresses.update_service_cidr
    ),
    (_STORAGE, "csidrivers"): KindRules(obj=csi.validate_driver, then=csi.update_driver),
    (_STORAGE, "csinodes"): KindRules(is_dns1123_subdomain, csi.validate_node, then=csi.update_node),
    (_STORAGE, "csistoragecapacities"): KindRules(obj=csi.validate_capacity, then=csi.update_capacity),
    (_STORAGE, "volumeattachments"): KindRules(
        obj=csi.validate_attachment,
        then=csi.update_attachment,
        subresources=(("status", csi.update_attachment_status),),
    ),
    (_STORAGE, "volumeattributesclasses"): KindRules(
        obj=csi.validate_attributes_class, update=csi.update_attributes_class
    ),
    (_DEVICES, "resourceclaims"): KindRules(
        create=devices.validate_claim,
        update=devices.update_spec,
        subresources=(("status", devices.update_claim_status),),
    ),
    (_DEVICES, "resourceclaimtemplates"): KindRules(create=devices.validate_template, update=devices.update_spec),
    (_DEVICES, "deviceclasses"): KindRules(obj=devices.validate_class),
    (_DEVICES, "resourceslices"): KindRules(obj=devices.validate_slice, update=devices.update_slice),
    (_FLOW, "flowschemas"): KindRules(
        obj=flow_control.validate_flow_schema, subresources=(("status", flow_control.update_status),)
    ),
    (_FLOW, "prioritylevelconfigurations"): KindRules(
        obj=flow_control.validate_priority_level, subresources=(("status", flow_control.update_status),)
    ),
}
