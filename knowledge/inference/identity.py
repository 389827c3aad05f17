"""What the bundled model is called, for those who must not load it."""

BUNDLED_MODEL_ID = "intfloat/multilingual-e5-small"
