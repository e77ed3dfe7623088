"""How a Pod stops. Seconds: `grace` (pure); who after whom: `order`. `kill_pod`, `kill_container` and `hooks` act."""
