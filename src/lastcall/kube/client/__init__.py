"""The Client protocol, HTTP implementation, informers and the event recorder."""
