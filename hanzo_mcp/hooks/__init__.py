"""Programs of the user's that may veto a call or look at its result (HIP-0301 §9)."""
