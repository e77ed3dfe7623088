"""Files the kubelet writes for a Pod: /etc/hosts, /etc/hostname, /etc/resolv.conf.

Sources: kubelet_pods.go:{ensureHostsFile,GeneratePodHostNameAndDomain}, network/dns/dns.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of
from lastcall.kube.cri.api import DNSConfig
from lastcall.kube.node.pods.spec import is_host_network_pod
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod, PodDNSConfig

MAX_NAMESERVERS = 3
MAX_SEARCHES = 32
_HEAD = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


@dataclass(frozen=True, slots=True)
class ClusterDNS:
    """`servers` empty: there is no cluster DNS. `node_resolv_conf` is the text of the node's own resolv.conf."""

    servers: tuple[str, ...] = ()
    domain: str = "cluster.local"
    node_resolv_conf: str = ""


def hostname_of(pod: Pod, node_name: str) -> str:
    """Return the host name: at most 63 characters, no trailing dash or dot; the node's for hostNetwork."""
    if is_host_network_pod(pod):
        return node_name
    name = pod["spec"].get("hostname") or name_of(pod)
    short = str(name)[:63].rstrip("-.")
    if pod["spec"].get("setHostnameAsFQDN") and (domain := domain_of(pod, "cluster.local")):
        return f"{short}.{domain}"
    return short


def domain_of(pod: Pod, cluster_domain: str) -> str:
    """Return the Pod's DNS domain if `spec.subdomain` is set, else ""."""
    subdomain = pod["spec"].get("subdomain")
    return f"{subdomain}.{namespace_of(pod)}.svc.{cluster_domain}" if subdomain else ""


def hosts_file(pod: Pod, pod_ips: tuple[str, ...], node_hosts: str, cluster_domain: str = "cluster.local") -> str:
    """Return the content of /etc/hosts. `node_hosts` is the node's own file, used for hostNetwork."""
    if is_host_network_pod(pod):
        text = "# Kubernetes-managed hosts file (host network).\n" + node_hosts
    else:
        text = _HEAD
        host = hostname_of(pod, "").partition(".")[0]
        domain = domain_of(pod, cluster_domain)
        for ip in pod_ips:
            text += f"{ip}\t{host}.{domain}\t{host}\n" if domain else f"{ip}\t{host}\n"
    aliases = pod["spec"].get("hostAliases") or []
    if aliases:
        text += "\n# Entries added by HostAliases.\n"
        text += "".join("\t".join([alias["ip"], *(alias.get("hostnames") or [])]) + "\n" for alias in aliases)
    return text


def dns_config_of(pod: Pod, cluster: ClusterDNS) -> DNSConfig:
    """Return the DNS configuration by dnsPolicy and dnsConfig. ClusterFirst without cluster DNS becomes Default."""
    policy = pod["spec"].get("dnsPolicy", "ClusterFirst")
    own: PodDNSConfig = pod["spec"].get("dnsConfig") or {}
    cluster_first = policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not is_host_network_pod(pod))
    node = parse_resolv_conf(cluster.node_resolv_conf)
    if policy == "None":
        base = DNSConfig()
    elif cluster_first and cluster.servers:
        domain, namespace = cluster.domain, namespace_of(pod)
        searches = (f"{namespace}.svc.{domain}", f"svc.{domain}", domain, *node.searches)
        base = DNSConfig(cluster.servers, tuple(dict.fromkeys(searches)), ("ndots:5",))
    else:
        base = node
    options = {option.partition(":")[0]: option for option in base.options}
    for option in own.get("options") or []:
        value = option.get("value")
        options[option["name"]] = f"{option['name']}:{value}" if value is not None else option["name"]
    return DNSConfig(
        servers=tuple(dict.fromkeys([*base.servers, *(own.get("nameservers") or [])]))[:MAX_NAMESERVERS],
        searches=tuple(dict.fromkeys([*base.searches, *(own.get("searches") or [])]))[:MAX_SEARCHES],
        options=tuple(options.values()),
    )


def parse_resolv_conf(text: str) -> DNSConfig:
    """Parse nameserver, search and options of a resolv.conf(5)."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split(";", 1)[0].split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver":
            servers.append(words[1])
        elif words[0] == "search":
            searches = tuple(word.rstrip(".") or "." for word in words[1:])
        elif words[0] == "options":
            options += words[1:]
    return DNSConfig(tuple(servers), searches, tuple(options))


def resolv_conf(dns: DNSConfig) -> str:
    lines = []
    if dns.searches:
        lines.append("search " + " ".join(dns.searches))
    lines += [f"nameserver {server}" for server in dns.servers]
    if dns.options:
        lines.append("options " + " ".join(dns.options))
    return "".join(line + "\n" for line in lines)
