"""The paper's experiments: plans as data, a runner that keeps what is finished, tables and figures from rows."""
