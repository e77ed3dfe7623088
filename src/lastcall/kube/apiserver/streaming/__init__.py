"""pods/exec, pods/attach and pods/portforward: to the kubelet and back, byte for byte."""
