"""From the words of a question or text to the clauses that they name. Pure."""
