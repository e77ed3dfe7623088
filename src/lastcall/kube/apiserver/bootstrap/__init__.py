"""What the API server makes and keeps in every cluster: flow control, the ServiceCIDR and addresses in it."""
