"""Settings, where they live and what they may say (HIP-0301 §4)."""
