"""The rooms of the follower: `lives` has the Pods, each other one a kind of news of them, `shelf` what they share."""
