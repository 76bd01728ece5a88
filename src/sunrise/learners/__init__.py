"""One algorithm a file, each written for one agent."""
