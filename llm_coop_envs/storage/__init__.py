"""Files and folders: atomic writing, run folders, locks and leases."""
