"""What can be asked of the API, verb by verb, once for HTTP and for clients in this process."""
