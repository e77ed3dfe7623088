"""Where objects live: the Store protocol and its implementations."""
