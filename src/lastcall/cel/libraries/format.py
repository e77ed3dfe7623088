"""Named formats of strings (apiserver pkg/cel/library/format.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
format.dns1123Label            format.dns1123Label            () -> NamedFormat
format.dns1123Subdomain        format.dns1123Subdomain        () -> NamedFormat
format.dns1035Label            format.dns1035Label            () -> NamedFormat
format.qualifiedName           format.qualifiedName           () -> NamedFormat
format.dns1123LabelPrefix      format.dns1123LabelPrefix      () -> NamedFormat
format.dns1123SubdomainPrefix  format.dns1123SubdomainPrefix  () -> NamedFormat
format.dns1035LabelPrefix      format.dns1035LabelPrefix      () -> NamedFormat
format.labelValue              format.labelValue              () -> NamedFormat
format.uri                     format.uri                     () -> NamedFormat
format.uuid                    format.uuid                    () -> NamedFormat
format.byte                    format.byte                    () -> NamedFormat
format.date                    format.date                    () -> NamedFormat
format.datetime                format.datetime                () -> NamedFormat
validate                       format-validate                NamedFormat.(string) -> optional_type(list(string))
format.named                   format-named                   (string) -> optional_type(NamedFormat)
"""

LIBRARY = Library("format", declared(ROWS))
