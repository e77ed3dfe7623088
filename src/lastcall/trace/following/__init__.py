"""The handlers of the follower: `lives` has the Pods, each other one knows one thing about them, `shelf` is shared."""
