"""What differs between kinds, one file each."""
