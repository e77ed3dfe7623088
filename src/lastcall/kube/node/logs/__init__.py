"""Container logs: read (`reader`), rotated (`rotation`), linked and removed (`files`). Which instance: `target`."""
