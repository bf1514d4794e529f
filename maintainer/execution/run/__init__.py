"""What all tables of one run share: clock, context, cancellation and the bounds of retries."""
