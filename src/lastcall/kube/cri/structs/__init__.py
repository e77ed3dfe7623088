"""What goes over the Container Runtime Interface, by topic. Others take all of it from `lastcall.kube.cri.api`."""
