from .api import StoreError as StoreError
from .etcd.layout import DEFAULT_PREFIX as DEFAULT_PREFIX
from .etcd.open import open_etcd as open_etcd
from .etcd.options import EtcdOptions as EtcdOptions
from .etcd.options import etcd_options as etcd_options
from .etcd.options import read_pem as read_pem
