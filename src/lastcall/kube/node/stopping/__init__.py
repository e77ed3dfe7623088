"""How a Pod stops. Seconds: `grace` (pure); the order: `order`. `kill_pod`, `kill_container` and `hooks` act."""
