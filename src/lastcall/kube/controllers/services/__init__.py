"""Controllers of Services: `endpoints` (v1), `endpointslice`, its `mirroring`, addresses of load balancers."""
