"""One job, run turn by turn, becomes one record, whatever goes wrong on the way."""
