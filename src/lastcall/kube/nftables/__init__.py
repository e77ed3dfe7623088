"""nftables: sets, chains and rules as data, and the same as text and as the kernel's messages."""
