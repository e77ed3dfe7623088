"""Images: pulled, imported or made (`pull`, `from_files`, `from_host`), kept as an OCI layout, unpacked for
containers.

Pure: `reference` reads names, `platform` chooses, `registry_auth` answers challenges. `store` puts it together;
`exports` has the names that other packages use.
"""
