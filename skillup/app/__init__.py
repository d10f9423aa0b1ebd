"""What the command line, pytest and cluster workers share: a run from request to report."""
