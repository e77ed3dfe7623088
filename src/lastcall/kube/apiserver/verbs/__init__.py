"""What can be asked of the API, verb by verb, once for both faces: HTTP and in-process."""
