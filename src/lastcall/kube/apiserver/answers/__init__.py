"""The forms an answer can take: `representation`; long lists piece by piece: `list_bodies`."""
