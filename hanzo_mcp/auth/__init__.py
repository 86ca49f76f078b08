"""Who the cloud believes we are."""
