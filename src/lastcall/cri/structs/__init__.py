"""What goes over the Container Runtime Interface, by topic. Others take all of it from `lastcall.cri.api`."""
