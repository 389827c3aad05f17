"""From a document's text and blocks to the map of its sections. Pure."""
