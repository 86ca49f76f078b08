"""The boundary between tools and the machine: paths, processes, addresses (HIP-0301 §10)."""
