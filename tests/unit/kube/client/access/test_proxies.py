"""Which proxy a request goes through: what the kubeconfig says, else what variables say, as Go reads them."""

import pytest

from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.proxies import proxy_for

P = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.example.com:6443", {}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": P}, P),
        ("https://api.example.com:6443", {"https_proxy": P}, P),
        ("https://api.example.com:6443", {"HTTP_PROXY": P}, ""),
        ("http://api.example.com", {"HTTP_PROXY": P}, P),
        ("https://api.example.com", {"HTTPS_PROXY": "proxy:3128"}, P),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": P}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": P}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": P}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": P, "NO_PROXY": "example.com"}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": P, "NO_PROXY": ".example.com"}, ""),
        ("https://example.com", {"HTTPS_PROXY": P, "NO_PROXY": ".example.com"}, P),
        ("https://example.com", {"HTTPS_PROXY": P, "NO_PROXY": "*.example.com"}, P),
        ("https://notexample.com", {"HTTPS_PROXY": P, "NO_PROXY": "example.com"}, P),
        ("https://api.example.com:6443", {"HTTPS_PROXY": P, "NO_PROXY": "x, example.com:6443"}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": P, "NO_PROXY": "example.com:443"}, P),
        ("https://10.1.2.3:6443", {"HTTPS_PROXY": P, "no_proxy": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3:6443", {"HTTPS_PROXY": P, "NO_PROXY": "10.1.2.3"}, ""),
        ("https://11.1.2.3:6443", {"HTTPS_PROXY": P, "NO_PROXY": "10.0.0.0/8"}, P),
        ("https://api.example.com", {"HTTPS_PROXY": P, "NO_PROXY": "*"}, ""),
    ],
)
def test_variables_name_a_proxy(server, environ, proxy):
    assert proxy_for(server, "", environ) == proxy


def test_what_the_kubeconfig_says_is_before_all_of_them():
    assert proxy_for("https://127.0.0.1:1", "socks5://p:1", {"NO_PROXY": "*"}) == "socks5://p:1"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("ftp://h", "unsupported scheme 'ftp', must be http, https, or socks5"),
        ("socks5h://h:1", "unsupported scheme"),
        ("127.0.0.1:9", "unsupported scheme"),
        ("http://", "there is no host in it"),
        ("http://h:99999", "is not a URL"),
    ],
)
def test_a_proxy_that_is_not_one_is_refused(url, part):
    with pytest.raises(KubeconfigError, match=part):
        proxy_for("https://h", url, {})
