"""The gate's addresses below /api/v1/."""
