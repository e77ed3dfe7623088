"""What nobody needs any more. Containers and sandboxes: `decide` (pure), `manager` acts. Images: `images`."""
