"""Published ports: `front` accepts on the host, `carrier` carries on in the node."""
