"""The process that looks at another runtime's containers by /proc, as the shim looks at lastcall's own.

The containers of another runtime are processes of its PID namespace, which the node's process does not see. This one is
there, outside of the cluster: it reads signal masks, processes and sockets with the shim's witness, and writes records.
"""

# check: standard library
