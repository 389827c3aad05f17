"""From a document's text and structure to the chunks that are searched. Pure."""
